"""The store of prefixes against a plain list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sandpiper.token_ids import common_prefix
from services.inference.engines.prefixes import Prefixes, Stored

sequences = st.lists(st.integers(0, 2), min_size=1, max_size=8)


def entry(ids: list[int]) -> Stored:
    return Stored(np.array(ids, dtype=np.int64), [], [])


@given(st.lists(sequences, max_size=12), sequences, st.integers(0, 30))
def test_the_longest_of_what_fits(puts: list[list[int]], asked: list[int], budget: int) -> None:
    store, held = Prefixes(budget), dict[tuple[int, ...], None]()
    for ids in puts:
        store.put(entry(ids))
        if len(ids) <= budget:
            held.pop(tuple(ids), None)
            held[tuple(ids)] = None
        while sum(map(len, held)) > budget:
            held.pop(next(iter(held)))
    query = np.array(asked, dtype=np.int64)
    expected = max((common_prefix(np.array(ids), query) for ids in held), default=0)
    length, found = store.longest(query)
    assert length == expected
    assert (found is None) is (expected == 0)
    if found is not None:
        assert common_prefix(found.ids, query) == length
    store.clear()
    assert store.longest(query) == (0, None)


def test_what_was_used_stays_longest() -> None:
    store = Prefixes(4)
    store.put(entry([1, 1]))
    store.put(entry([2, 2]))
    store.longest(np.array([1]))
    store.put(entry([3, 3]))
    assert [store.longest(np.array([n]))[0] for n in (1, 2, 3)] == [1, 0, 1]
