"""Confidence intervals for pass rates that share tasks."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

Outcomes = Mapping[str, Sequence[bool]]
"""Task id → passed, one entry a sample."""

Z95 = 1.959964


@dataclass(frozen=True)
class Interval:
    """A point estimate with its 95 % interval."""

    value: float
    low: float
    high: float

    def excludes_zero(self) -> bool:
        """True when the whole interval lies on one side of zero."""
        return self.low > 0 or self.high < 0


def pass_rate(outcomes: Outcomes) -> float:
    """Mean over tasks of the share of passed samples; 0.0 when there is no task."""
    if not outcomes:
        return 0.0
    return sum(sum(passed) / len(passed) for passed in outcomes.values()) / len(outcomes)


def wilson(passed: int, total: int) -> Interval:
    """Wilson score interval of a proportion (Wilson 1927)."""
    if total == 0:
        return Interval(0.0, 0.0, 1.0)
    share = passed / total
    centre = share + Z95**2 / (2 * total)
    spread = Z95 * sqrt(share * (1 - share) / total + Z95**2 / (4 * total**2))
    scale = 1 + Z95**2 / total
    return Interval(share, max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale))


def paired_gain(before: Outcomes, after: Outcomes, seed: int = 0, rounds: int = 10_000) -> Interval:
    """Gain in pass rate with a percentile bootstrap over tasks (Efron 1979).

    Tasks are resampled, not samples: the samples of one task are not independent. Only tasks that both
    evaluations have count.
    """
    tasks = sorted(set(before) & set(after))
    if not tasks:
        return Interval(0.0, 0.0, 0.0)
    gains = [sum(after[t]) / len(after[t]) - sum(before[t]) / len(before[t]) for t in tasks]
    source = random.Random(seed)
    means = sorted(sum(source.choices(gains, k=len(gains))) / len(gains) for _ in range(rounds))
    return Interval(sum(gains) / len(gains), means[int(0.025 * rounds)], means[int(0.975 * rounds) - 1])
