"""Rows and micro-batches: sequences of a group share the forward pass of their common prompt.

A row is [shared prefix][rest of member 1][rest of member 2]…; positions restart after the prefix and a mask
lets each member see the prefix and itself. This computes the same numbers as one row per member, up to the
order of floating-point sums. Rows are sorted by length, so that a micro-batch has little padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from services.learner.training.sequences import TrainSequence

Group = Sequence[TrainSequence]


@dataclass(frozen=True)
class Row:
    """Sequences that share their first `prefix` tokens, none of which is a target."""

    prefix: int
    members: tuple[TrainSequence, ...]

    @property
    def length(self) -> int:
        """Tokens in the row."""
        return self.prefix + sum(len(member.ids) - self.prefix for member in self.members)


@dataclass(frozen=True)
class Costs:
    """What a row costs: length · (linear + length), in units of one attention pair."""

    linear: float
    """Parameters of one layer over twice its attention width."""
    share: bool = True
    """False for models whose attention is not plain causal (sliding windows and the like)."""


def rows_of(group: Group, limit: int, costs: Costs) -> list[Row]:
    """Rows of one group, each at most `limit` tokens unless a single sequence is longer."""
    members = sorted(group, key=lambda s: (len(s.ids), s.episode_id))
    prefix = shared_prefix(members) if costs.share and len(members) > 1 else 0
    if prefix == 0:
        return [Row(0, (member,)) for member in members]
    rows: list[Row] = []
    open_row: list[TrainSequence] = []
    for member in members:
        if open_row and not _joins(Row(prefix, tuple(open_row)).length, member, prefix, limit, costs):
            rows.append(_row(prefix, open_row))
            open_row = []
        open_row.append(member)
    return [*rows, _row(prefix, open_row)]


def shared_prefix(members: Group) -> int:
    """Length of the longest common prefix that ends before any member's first target."""
    bound = min(int(member.targets[0]) for member in members)
    first = members[0].ids[:bound]
    for member in members[1:]:
        differs = np.nonzero(first != member.ids[: len(first)])[0]
        first = first[: int(differs[0])] if len(differs) else first
    return len(first)


def micro_batches(rows: Sequence[Row], limit: int) -> list[list[Row]]:
    """Batches of at most `limit` padded tokens (a single row may be longer), longest rows first."""
    batches: list[list[Row]] = []
    for row in sorted(rows, key=lambda r: (-r.length, r.members[0].episode_id)):
        if batches and (len(batches[-1]) + 1) * batches[-1][0].length <= limit:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def _row(prefix: int, members: list[TrainSequence]) -> Row:
    return Row(prefix if len(members) > 1 else 0, tuple(members))


def _joins(length: int, member: TrainSequence, prefix: int, limit: int, costs: Costs) -> bool:
    joined = length + len(member.ids) - prefix
    if joined > limit:
        return False
    return _cost(joined, costs) - _cost(length, costs) < _cost(len(member.ids), costs)


def _cost(length: int, costs: Costs) -> float:
    return length * (costs.linear + length)
