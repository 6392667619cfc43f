"""The reward is a pure, bounded, monotone function of evidence."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandpiper.tasks.model import RewardSpec
from services.reward_grader.evidence import Evidence, gather
from services.reward_grader.reward import RewardError, reward
from tests.unit.reward_grader.grading_parts import NONCE, make_subject, report, result

SPEC = RewardSpec()
KINDS = ("ok", "assertion", "exception", "timeout", "syntax", "missing")


def judged(*kinds: str) -> Evidence:
    return gather(make_subject(), result(report(*kinds)), NONCE)


@pytest.mark.parametrize(
    ("kinds", "value", "text"),
    [
        (("ok", "ok", "ok", "ok"), 1.0, "all 4 hidden tests passed"),
        (("syntax",) * 4, -0.5, "syntax error -0.5, 0 of 4"),
        (("assertion",) * 4, -0.1, "assertion failure -0.1, 0 of 4"),
        (("ok", "ok", "ok", "assertion"), 0.05, "assertion failure -0.1, 3 of 4 hidden tests passed +0.15"),
        (("exception",) * 4, -0.2, "error -0.2, 0 of 4"),
        (("ok", "ok", "exception", "assertion"), -0.1, "error -0.2, 2 of 4"),
        (("timeout", "ok", "ok", "ok"), -0.05, "timeout -0.2, 3 of 4"),
    ],
)
def test_defaults_follow_the_design(kinds: tuple[str, ...], value: float, text: str) -> None:
    earned = reward(judged(*kinds), SPEC)
    assert earned.value == pytest.approx(value)
    assert earned.passed is (value == 1.0)
    assert earned.parts[0].explanation.startswith(text)
    assert sum(part.value * part.weight for part in earned.parts) == pytest.approx(earned.value)


def test_limits_and_missing_artifacts_are_other_errors() -> None:
    evidence = gather(make_subject(), result(report("ok", "ok", "ok", "ok", missing=("solution.py",))), NONCE)
    earned = reward(evidence, SPEC)
    assert not earned.passed
    assert earned.value == pytest.approx(0.0)
    assert earned.parts[0].explanation.startswith("missing artifact -0.2")


specs = st.builds(
    lambda completed, syntax, failure, other, bonus: (completed, syntax, failure, other, bonus),
    st.floats(-1, 1),
    st.floats(-1, 1),
    st.floats(-1, 1),
    st.floats(-1, 1),
    st.floats(0, 1),
)


@settings(deadline=None)
@given(specs, st.lists(st.sampled_from(KINDS), min_size=4, max_size=4))
def test_every_valid_spec_gives_a_bounded_reward_and_failing_stays_below(
    numbers: tuple[float, ...], kinds: list[str]
) -> None:
    names = ("completed", "syntax_error", "assertion_failure", "other_error", "coverage_bonus")
    try:
        spec = RewardSpec(**dict(zip(names, numbers, strict=True)))
    except ValueError:
        return
    earned = reward(judged(*kinds), spec)
    assert math.isfinite(earned.value)
    assert -1 <= earned.value <= 1
    assert earned.passed == (set(kinds) == {"ok"})
    assert earned.passed or earned.value < spec.completed


@settings(deadline=None)
@given(st.lists(st.sampled_from(("ok", "assertion", "exception")), min_size=4, max_size=4), st.integers(0, 3))
def test_mending_one_test_never_costs(kinds: list[str], place: int) -> None:
    better = list(kinds)
    better[place] = {"exception": "assertion"}.get(kinds[place], "ok")
    assert reward(judged(*better), SPEC).value >= reward(judged(*kinds), SPEC).value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1.5, -1.01])
def test_what_is_not_a_reward_is_an_error(value: float) -> None:
    spec = SPEC.model_copy(update={"completed": value})
    with pytest.raises(RewardError):
        reward(judged("ok", "ok", "ok", "ok"), spec)


def test_it_is_pure() -> None:
    evidence: Any = judged("ok", "assertion", "ok", "ok")
    assert reward(evidence, SPEC) == reward(Evidence.model_validate_json(evidence.model_dump_json()), SPEC)
