"""What a run has consumed: which group and episode went into which step.

Invariants: a group is consumed at most once, an episode is trained at most once, and an entry never changes.
The ledger is part of the checkpoint, so it says exactly what the checkpoint's weights have seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import zstandard


@dataclass(frozen=True)
class Consumed:
    """What one step took from the buffer."""

    step: int
    groups: tuple[str, ...]
    episodes: tuple[str, ...]
    discarded: tuple[str, ...]
    """Groups taken and not trained: too stale, or not trainable."""


@dataclass
class Ledger:
    """All steps of a run, in order."""

    steps: list[Consumed] = field(default_factory=list)
    _step_of_group: dict[str, int] = field(default_factory=dict)
    _episodes: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for entry in self.steps:
            self._index(entry)

    def step_of(self, group_id: str) -> int | None:
        """The step that consumed or discarded a group, None when none did."""
        return self._step_of_group.get(group_id)

    def trained(self, episode_ids: Iterable[str]) -> list[str]:
        """Those of `episode_ids` that a step was trained on."""
        return [episode for episode in episode_ids if episode in self._episodes]

    def with_step(self, entry: Consumed) -> Ledger:
        """A new ledger with one more step. Raises ValueError when something would be consumed twice."""
        groups = (*entry.groups, *entry.discarded)
        again = [g for g in groups if g in self._step_of_group] + self.trained(entry.episodes)
        if again or len(set(groups)) < len(groups) or len(set(entry.episodes)) < len(entry.episodes):
            raise ValueError(f"step {entry.step} would consume again: {again[:3]}")
        return Ledger([*self.steps, entry])

    def encode(self) -> bytes:
        """Compressed JSON."""
        rows: list[Sequence[object]] = [(e.step, e.groups, e.episodes, e.discarded) for e in self.steps]
        return zstandard.compress(json.dumps(rows, separators=(",", ":")).encode())

    @classmethod
    def decode(cls, data: bytes) -> Ledger:
        """The inverse of `encode`."""
        rows = json.loads(zstandard.decompress(data))
        return cls([Consumed(s, tuple(g), tuple(e), tuple(d)) for s, g, e, d in rows])

    def _index(self, entry: Consumed) -> None:
        self._step_of_group.update(dict.fromkeys((*entry.groups, *entry.discarded), entry.step))
        self._episodes.update(entry.episodes)
