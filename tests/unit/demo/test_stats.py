"""Intervals hold what they promise."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandpiper.demo.stats import paired_gain, pass_rate, wilson

samples = st.lists(st.booleans(), min_size=1, max_size=4)
outcomes = st.dictionaries(st.sampled_from("abcdefgh"), samples, min_size=1)


@given(outcomes, outcomes)
def test_the_gain_lies_inside_its_interval_and_is_antisymmetric(before: dict, after: dict) -> None:
    gain, loss = paired_gain(before, after, rounds=200), paired_gain(after, before, rounds=200)
    assert -1 <= gain.low <= gain.high <= 1
    assert gain.value == pytest.approx(-loss.value)


def test_no_change_has_a_zero_interval() -> None:
    same = {"a": [True, False], "b": [True]}
    assert paired_gain(same, same, rounds=100) == paired_gain(same, same, rounds=50)
    assert not paired_gain(same, same, rounds=100).excludes_zero()


def test_a_clear_gain_excludes_zero() -> None:
    tasks = [str(n) for n in range(30)]
    gain = paired_gain({t: [False] for t in tasks}, {t: [n % 2 == 0] for n, t in enumerate(tasks)})
    assert gain.excludes_zero()
    assert gain.value == pytest.approx(0.5)


def test_the_interval_covers_the_truth_about_95_times_in_100() -> None:
    source = random.Random(1)
    covered = 0
    for _ in range(100):
        before = {str(n): [source.random() < 0.3 for _ in range(4)] for n in range(30)}
        after = {str(n): [source.random() < 0.5 for _ in range(4)] for n in range(30)}
        interval = paired_gain(before, after, rounds=400)
        covered += interval.low <= 0.2 <= interval.high
    assert covered >= 88


@given(st.integers(0, 50), st.integers(0, 50))
def test_wilson_holds_the_share(passed: int, failed: int) -> None:
    interval = wilson(passed, passed + failed)
    assert 0 <= interval.low <= interval.value <= interval.high + 1e-12 <= 1 + 1e-9


def test_pass_rate_weighs_tasks_equally() -> None:
    assert pass_rate({"a": [True, True, True, True], "b": [False]}) == 0.5
    assert pass_rate({}) == 0.0
