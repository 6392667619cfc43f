"""Keys and values of requests that ended, for prompts that begin alike.

The next turn of an episode begins with all of the turn before, all episodes of a group with one prompt, all
prompts with one system message. Reading a prompt costs as much per token as generating one.

Invariant: whatever is held was computed by the present weights; `clear` when they change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from sandpiper.token_ids import Ids, common_prefix


@dataclass(frozen=True)
class Stored:
    """`ids` [n] with the keys and values [n, kv heads, head size] of each layer."""

    ids: Ids
    keys: Sequence[torch.Tensor]
    values: Sequence[torch.Tensor]


class Prefixes:
    """At most `budget` tokens; the least recently used go first."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._entries: dict[bytes, Stored] = {}
        self._tokens = 0

    @property
    def budget(self) -> int:
        """Most tokens that are held."""
        return self._budget

    def put(self, entry: Stored) -> None:
        """Hold an entry, unless it alone is above the budget."""
        if len(entry.ids) > self._budget:
            return
        self._forget(entry.ids.tobytes())
        self._entries[entry.ids.tobytes()] = entry
        self._tokens += len(entry.ids)
        while self._tokens > self._budget:
            self._forget(next(iter(self._entries)))

    def longest(self, ids: Ids) -> tuple[int, Stored | None]:
        """The entry that shares most tokens with the beginning of `ids`, and how many they are."""
        best, found = 0, None
        for entry in self._entries.values():
            shared = common_prefix(entry.ids, ids)
            if shared > best:
                best, found = shared, entry
        if found is not None:  # now the most recently used
            self._entries[found.ids.tobytes()] = self._entries.pop(found.ids.tobytes())
        return best, found

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._tokens = 0

    def _forget(self, key: bytes) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._tokens -= len(entry.ids)
