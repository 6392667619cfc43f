"""YAML from strangers."""

from __future__ import annotations

import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sandpiper.strict_yaml import MAX_DEPTH, load_yaml

KEYS = st.text("abc", min_size=1)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text("ab c:#-'\"\n", max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_plain_data_round_trips(data: object) -> None:
    # Without aliases: the dumper makes them for one object that is there twice.
    dumper = type("Dumper", (yaml.SafeDumper,), {"ignore_aliases": lambda self, data: True})
    assert load_yaml(yaml.dump(data, Dumper=dumper)) == data


@pytest.mark.parametrize(
    "text",
    [
        "[" * 3_000_000,
        "{" * 3_000_000,
        "- " * 3_000_000,
        "? " * 1_000_000,
        "a: &a [x]\nb: *a",
        "<<: *a",
        "a: 1\na: 2",
        "{[1]: 2}",
        "!!python/object/apply:os.getcwd []",
        "a: [",
        "a: 1\n--- \nb: 2",
        "\x00",
    ],
    ids=range(12),
)
def test_what_is_refused_is_refused_fast(text: str) -> None:
    began = time.process_time()
    with pytest.raises(yaml.YAMLError):
        load_yaml(text)
    assert time.process_time() - began < 5


def test_depth_is_allowed_up_to_its_limit() -> None:
    assert load_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH) is not None
    with pytest.raises(yaml.YAMLError, match="deeper"):
        load_yaml("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))


@pytest.mark.parametrize("text", ["2001-99-99", "9" * 5000, "!!int x"])
def test_values_that_python_cannot_hold(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        load_yaml(text)
