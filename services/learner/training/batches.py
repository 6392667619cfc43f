"""Micro-batches as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from services.learner.training.packing import Row
from services.learner.training.sequences import TrainSequence

PADDING = -1
PREFIX = 0


@dataclass(frozen=True)
class Batch:
    """One forward pass: B rows padded on the right to L tokens, N trained tokens."""

    input_ids: Tensor
    """[B, L]"""
    position_ids: Tensor
    """[B, L]"""
    mask: Tensor | None
    """[B, 1, L, L], True where a query may see a key; None where plain causal attention is enough."""
    rows: Tensor
    """[N] row of the position that predicts each target."""
    columns: Tensor
    """[N] and its column."""
    targets: Tensor
    """[N] token ids."""
    behaviour: Tensor
    """[N]"""
    advantages: Tensor
    """[N]"""
    weights: Tensor
    """[N] share of each token in the loss."""
    lengths: tuple[int, ...]
    """Targets per sequence; the sequences of all rows in order."""

    def to(self, device: torch.device) -> Batch:
        """The same on `device`."""
        moved = {k: v.to(device) if isinstance(v, Tensor) else v for k, v in vars(self).items()}
        return Batch(**moved)


def members_of(rows: Sequence[Row]) -> list[TrainSequence]:
    """The sequences of a micro-batch, in the order of its targets."""
    return [member for row in rows for member in row.members]


def collate(rows: Sequence[Row], weight_of: dict[str, float]) -> Batch:
    """Tensors of a micro-batch. `weight_of`: weight of each token of an episode."""
    width = max(row.length for row in rows)
    ids = np.zeros((len(rows), width), dtype=np.int64)
    positions = np.zeros_like(ids)
    segments = np.full_like(ids, PADDING)
    row_index: list[int] = []
    columns: list[np.ndarray] = []
    for number, row in enumerate(rows):
        columns += _fill(row, ids[number], positions[number], segments[number])
        row_index += [number] * sum(len(member.targets) for member in row.members)
    members = members_of(rows)
    lengths = [len(member.targets) for member in members]
    return Batch(
        input_ids=torch.from_numpy(ids),
        position_ids=torch.from_numpy(positions),
        mask=_mask(segments) if any(row.prefix for row in rows) else None,
        rows=torch.tensor(row_index, dtype=torch.int64),
        columns=torch.from_numpy(np.concatenate(columns)),
        targets=torch.from_numpy(np.concatenate([member.ids[member.targets] for member in members])),
        behaviour=torch.from_numpy(np.concatenate([member.behaviour for member in members])),
        advantages=_spread([member.advantage for member in members], lengths),
        weights=_spread([weight_of[member.episode_id] for member in members], lengths),
        lengths=tuple(lengths),
    )


def _fill(row: Row, ids: np.ndarray, positions: np.ndarray, segments: np.ndarray) -> list[np.ndarray]:
    """Write one row in place; returns the columns that predict each member's targets."""
    prefix = row.prefix
    ids[:prefix] = row.members[0].ids[:prefix]
    positions[:prefix] = np.arange(prefix)
    segments[:prefix] = PREFIX
    offset = prefix
    columns = []
    for number, member in enumerate(row.members, start=1):
        end = offset + len(member.ids) - prefix
        ids[offset:end] = member.ids[prefix:]
        positions[offset:end] = np.arange(prefix, len(member.ids))
        segments[offset:end] = number
        before = member.targets - 1
        columns.append(np.where(before < prefix, before, before - prefix + offset))
        offset = end
    return columns


def _mask(segments: np.ndarray) -> Tensor:
    segment = torch.from_numpy(segments)
    query, key = segment[:, :, None], segment[:, None, :]
    length = segment.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    # Padding sees itself, so that no row of the softmax is empty; nothing else sees padding.
    return (causal & ((key == PREFIX) | (key == query)))[:, None]


def _spread(values: list[float], lengths: list[int]) -> Tensor:
    return torch.from_numpy(np.repeat(np.array(values, dtype=np.float32), lengths))
