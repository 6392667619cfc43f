"""What a step reports about itself: `TrainingStep.metrics`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from services.learner.training.loss import TokenStats
from services.learner.training.sequences import TrainSequence


@dataclass
class TokenTotals:
    """TokenStats added up over the micro-batches of a step."""

    sums: dict[str, Tensor] = field(default_factory=dict)

    def add(self, stats: TokenStats) -> None:
        """Add one micro-batch."""
        for name, value in vars(stats).items():
            self.sums[name] = self.sums[name] + value if name in self.sums else value

    def means(self) -> dict[str, float]:
        """Per trained token; zeros when nothing was trained."""
        sums = {name: float(value) for name, value in self.sums.items()}
        tokens = max(sums.get("tokens", 0.0), 1.0)
        return {
            "clip_fraction": sums.get("clipped", 0.0) / tokens,
            "engine_log_ratio_abs": sums.get("abs_log_ratio", 0.0) / tokens,
            "tis_mean": sums.get("tis", tokens if not sums else 0.0) / tokens,
            "engine_k3": sums.get("k3", 0.0) / tokens,
            "entropy": sums.get("surprise", 0.0) / tokens,
        }


def describe(groups: Sequence[Sequence[TrainSequence]], version: int) -> dict[str, float]:
    """Rewards, lengths and staleness of what a step was given."""
    sequences = [sequence for group in groups for sequence in group]
    rewards = np.array([s.reward for s in sequences])
    behind = np.array([version - int(s.versions.min()) for s in sequences if len(s.versions)])
    lengths = np.array([len(s.targets) for s in sequences], dtype=float)
    return {
        "reward_mean": _mean(rewards),
        "reward_std": float(rewards.std(ddof=1)) if len(rewards) > 1 else 0.0,
        "pass_rate": _mean([s.passed for s in sequences]),
        "staleness_mean": _mean(behind),
        "staleness_max": float(behind.max()) if len(behind) else 0.0,
        "length_mean": _mean(lengths),
        "length_max": float(lengths.max()) if len(lengths) else 0.0,
        "trajectories": float(len(sequences)),
        "groups": float(len(groups)),
    }


def finite(values: Iterable[Tensor]) -> bool:
    """True when no value is infinite or NaN."""
    return all(bool(torch.isfinite(value).all()) for value in values)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return float(np.mean(listed)) if listed else 0.0
