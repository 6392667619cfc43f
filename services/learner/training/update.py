"""Which sequences go into which optimizer update, with their advantages and weights."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from sandpiper.runs import Algorithm
from services.learner.training.loss import advantages, has_signal, token_weights
from services.learner.training.packing import Pack, packs_of
from services.learner.training.sequences import TrainSequence

Group = Sequence[TrainSequence]


@dataclass(frozen=True)
class Judged:
    """One group with advantages: `counted` is in the loss's denominators, `moving` has a gradient."""

    counted: tuple[TrainSequence, ...]

    @property
    def moving(self) -> list[TrainSequence]:
        """Sequences whose advantage is not 0: the others need no forward pass."""
        return [s for s in self.counted if s.advantage != 0.0 and len(s.targets)]


@dataclass(frozen=True)
class Update:
    """One optimizer update."""

    packs: tuple[Pack, ...]
    weight_of: dict[str, float]


def judge(group: Group, fresh: set[str], algorithm: Algorithm) -> Judged | None:
    """Advantages over all rewards of the group, kept for the `fresh` episodes.

    None when the group has no signal and such groups are filtered: it counts nowhere.
    """
    rewards = torch.tensor([s.reward for s in group], dtype=torch.float64)
    signal = has_signal(rewards)
    if not signal and algorithm.filter_zero_variance:
        return None
    if signal or len(group) == 1:
        values = advantages(rewards, algorithm.normalise_std).tolist()
    else:  # exactly zero: rounding of the mean must not be blown up by the small deviation
        values = [0.0] * len(group)
    judged = (s.with_advantage(v) for s, v in zip(group, values, strict=True))
    return Judged(tuple(s for s in judged if s.episode_id in fresh))


def plan(
    judged: Sequence[Judged], algorithm: Algorithm, share: bool, micro_tokens: int, seed: str
) -> list[Update]:
    """The updates of one step, epoch after epoch; the same for the same arguments.

    Minibatches cut a shuffled order of groups into parts of nearly equal numbers of sequences.
    """
    updates = []
    for epoch in range(algorithm.inner_epochs):
        order = list(judged)
        if algorithm.minibatches > 1:
            random.Random(f"{seed}/{epoch}").shuffle(order)
        updates += [
            update
            for part in _cut(order, algorithm.minibatches)
            if (update := _update(part, algorithm, share, micro_tokens)).packs
        ]
    return updates


def _cut(order: Sequence[Judged], parts: int) -> list[list[Judged]]:
    flat = [(number, s) for number, group in enumerate(order) for s in group.counted]
    bounds = [len(flat) * i // parts for i in range(parts + 1)]
    cuts = []
    for start, end in itertools.pairwise(bounds):
        numbers = sorted({number for number, _ in flat[start:end]})
        cuts.append([Judged(tuple(s for n, s in flat[start:end] if n == number)) for number in numbers])
    return cuts


def _update(part: Sequence[Judged], algorithm: Algorithm, share: bool, micro_tokens: int) -> Update:
    counted = [s for group in part for s in group.counted]
    lengths = torch.tensor([len(s.targets) for s in counted])
    weights = token_weights(lengths, algorithm.loss_norm).tolist() if counted else []
    moving = [s for group in part for s in group.moving]
    return Update(
        packs=tuple(packs_of(moving, micro_tokens, share)),
        weight_of={s.episode_id: w for s, w in zip(counted, weights, strict=True)},
    )
