"""Closed groups that wait for their step. Pure; one buffer per run.

Invariants:
* a group is in the buffer at most once, whatever number of messages brought it;
* every message that brought it waits on the same future, which is resolved when the group's fate is
  committed;
* the oldest groups (by order of admission) are taken first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from services.learner.training.sequences import TrainSequence
from services.learner.training.trainer import TakenGroup


@dataclass(frozen=True)
class Place:
    """Where a message lies in the log."""

    topic: str
    partition: int
    offset: int


@dataclass
class Waiting:
    """One group in the buffer."""

    group_id: str
    index: int
    sequences: tuple[TrainSequence, ...]
    """Empty when nothing of the group can be trained."""
    version_min: dict[str, int]
    """Episode -> oldest policy version that produced any of its tokens."""
    fate: asyncio.Future[None]
    places: set[Place] = field(default_factory=set)
    fetch_s: float = 0.0
    waiters: int = 0

    def waits_before(self, place: Place) -> bool:
        """True when a message of the group that lies before `place` in the same partition is waiting."""
        return any(
            (own.topic, own.partition) == (place.topic, place.partition) and own.offset < place.offset
            for own in self.places
        )

    def fresh(self, version: int, max_staleness: int) -> frozenset[str]:
        """Episodes that are at most `max_staleness` versions behind `version`."""
        return frozenset(e for e, oldest in self.version_min.items() if version - oldest <= max_staleness)


@dataclass(frozen=True)
class Take:
    """What a step would take: groups to train, and groups to discard."""

    groups: tuple[Waiting, ...]
    discarded: tuple[Waiting, ...]
    complete: bool
    """True when there are as many groups as a step needs."""

    def taken(self, version: int, max_staleness: int) -> list[TakenGroup]:
        """The groups as the trainer wants them."""
        return [TakenGroup(g.sequences, g.fresh(version, max_staleness)) for g in self.groups]

    @property
    def all(self) -> tuple[Waiting, ...]:
        """Everything whose fate the step decides."""
        return (*self.groups, *self.discarded)


class Buffer:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._waiting: dict[str, Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def get(self, group_id: str) -> Waiting | None:
        """The group if it waits."""
        return self._waiting.get(group_id)

    def add(self, group: Waiting) -> Waiting:
        """Let a group wait; returns the one that waits, which is another if it was there already."""
        return self._waiting.setdefault(group.group_id, group)

    def take(self, count: int, version: int, max_staleness: int) -> Take:
        """The oldest `count` groups with something fresh, and the stale ones found on the way.

        Nothing is removed: that is `settle`, once the outcome is committed.
        """
        groups: list[Waiting] = []
        discarded: list[Waiting] = []
        for group in sorted(self._waiting.values(), key=lambda g: (g.index, g.group_id)):
            if len(groups) == count:
                break
            (groups if group.fresh(version, max_staleness) else discarded).append(group)
        return Take(tuple(groups), tuple(discarded), len(groups) == count)

    def settle(self, group_ids: Iterable[str]) -> None:
        """Remove groups whose fate is decided and let their messages be committed."""
        for group_id in group_ids:
            group = self._waiting.pop(group_id, None)
            if group is not None and not group.fate.done():
                group.fate.set_result(None)

    def settle_all(self) -> None:
        """Let go of everything."""
        self.settle(list(self._waiting))

    def abandon(self) -> None:
        """Cancel everyone who waits: their messages stay uncommitted."""
        for group in self._waiting.values():
            group.fate.cancel()
        self._waiting.clear()

    def forget(self, group_id: str) -> None:
        """A message of the group stopped waiting; a group that nobody waits for any more is dropped."""
        group = self._waiting.get(group_id)
        if group is not None and group.waiters == 0:
            del self._waiting[group_id]

    def drop_if(self, gone: Callable[[str], bool]) -> list[str]:
        """Settle every group that `gone` says was consumed elsewhere; returns their ids."""
        ids = [group_id for group_id in self._waiting if gone(group_id)]
        self.settle(ids)
        return ids

    def places(self) -> list[Place]:
        """Where the waiting messages lie."""
        return [place for group in self._waiting.values() for place in group.places]
