"""Evidence -> reward: a pure function, so that a stored record can be regraded without running anything.

    passed                          completed
    otherwise                       base(worst kind of failure) + coverage_bonus * passed tests / tests

The worst kind among failing tests decides the base: syntax_error below everything, then other_error
(exception, timeout, a limit, a missing artifact, a test that did not run), then assertion_failure. So
turning an exception into a wrong answer, and a wrong answer into a right one, each raises the reward.
`RewardSpec` makes sure that no failing reward reaches `completed`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sandpiper.tasks.model import RewardSpec
from services.reward_grader.evidence import Evidence


class RewardError(Exception):
    """The computed reward is not a number in [-1, 1]. A bug or a bad spec, never a reward."""


@dataclass(frozen=True)
class Part:
    """One dimension's share: `reward` is the weighted sum of the parts."""

    name: str
    value: float
    weight: float
    explanation: str


@dataclass(frozen=True)
class Reward:
    """The reward and how it came about."""

    value: float
    passed: bool
    parts: tuple[Part, ...]


def reward(evidence: Evidence, spec: RewardSpec) -> Reward:
    """The reward of `evidence` under `spec`.

    Raises:
        RewardError: the result is not finite or outside [-1, 1].
    """
    passed = evidence.verdict == "passed"
    functional = _completed(evidence, spec) if passed else _failing(evidence, spec)
    value = functional.weight * functional.value
    if not math.isfinite(value) or not -1.0 <= value <= 1.0:
        raise RewardError(f"reward {value!r} of {evidence.request_id}")
    return Reward(value, passed, (functional,))


def _completed(evidence: Evidence, spec: RewardSpec) -> Part:
    return Part("functional", spec.completed, 1.0, f"all {len(evidence.tests)} hidden tests passed")


def _failing(evidence: Evidence, spec: RewardSpec) -> Part:
    word, base = _base(evidence, spec)
    count = sum(test.status == "passed" for test in evidence.tests)
    fraction = count / len(evidence.tests) if evidence.tests else 0.0
    value = base + spec.coverage_bonus * fraction
    text = f"{word} {base:+g}, {count} of {len(evidence.tests)} hidden tests passed {value - base:+g}"
    return Part("functional", value, 1.0, text)


def _base(evidence: Evidence, spec: RewardSpec) -> tuple[str, float]:
    if evidence.verdict == "syntax_error":
        return "syntax error", spec.syntax_error
    if evidence.verdict == "failed_tests":
        return "assertion failure", spec.assertion_failure
    return evidence.verdict.replace("_", " "), spec.other_error
