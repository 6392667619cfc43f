"""A pack as tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from services.learner.training.attention import Layout
from services.learner.training.packing import Pack


@dataclass(frozen=True)
class Batch:
    """One forward pass over T tokens, N of them trained."""

    input_ids: Tensor
    """[1, T]"""
    position_ids: Tensor
    """[1, T] position of each token in its sequences."""
    layout: Layout
    predictors: Tensor
    """[N] where the token before each target lies."""
    targets: Tensor
    """[N] token ids."""
    behaviour: Tensor
    """[N]"""
    advantages: Tensor
    """[N]"""
    weights: Tensor
    """[N] share of each token in the loss."""
    names: tuple[str, ...]
    """Episode of each sequence, in the order of the targets."""
    lengths: tuple[int, ...]
    """Targets of each sequence."""

    def to(self, device: torch.device) -> Batch:
        """The same on `device`."""
        moved = {k: v.to(device) if isinstance(v, Tensor) else v for k, v in vars(self).items()}
        return Batch(**moved)


def collate(pack: Pack, weight_of: Mapping[str, float]) -> Batch:
    """Tensors of a pack. `weight_of`: weight of each token of an episode."""
    ids = np.zeros(pack.length, dtype=np.int64)
    positions = np.zeros_like(ids)
    for node in pack.nodes:
        positions[node.offset : node.offset + node.length] = np.arange(
            node.position, node.position + node.length
        )
    places = [pack.places(index) for index in range(len(pack.members))]
    for member, where in zip(pack.members, places, strict=True):
        ids[where] = member.ids
    members = pack.members
    lengths = [len(member.targets) for member in members]
    predictors = [where[m.targets - 1] for m, where in zip(members, places, strict=True)]
    return Batch(
        input_ids=torch.from_numpy(ids)[None],
        position_ids=torch.from_numpy(positions)[None],
        layout=Layout(tuple(n.length for n in pack.nodes), tuple(n.ancestors for n in pack.nodes)),
        predictors=torch.from_numpy(np.concatenate(predictors)),
        targets=torch.from_numpy(np.concatenate([m.ids[m.targets] for m in members])),
        behaviour=torch.from_numpy(np.concatenate([m.behaviour for m in members])),
        advantages=_spread([m.advantage for m in members], lengths),
        weights=_spread([weight_of[m.episode_id] for m in members], lengths),
        names=tuple(m.episode_id for m in members),
        lengths=tuple(lengths),
    )


def _spread(values: list[float], lengths: list[int]) -> Tensor:
    return torch.from_numpy(np.repeat(np.array(values, dtype=np.float32), lengths))
