"""The report is one self-contained page that says what happened, good or bad."""

from __future__ import annotations

import pytest

from sandpiper.demo.charts import Series, line_chart
from sandpiper.demo.report import Report
from sandpiper.demo.stats import Interval


def make_report(gain: Interval) -> Report:
    turn = {
        "number": 0,
        "finish_reason": "stop",
        "outcome": "ok",
        "messages": [{"role": "user", "content": "<script>alert(1)</script>"}],
        "text": "def f(): ...",
        "observation": "All visible tests passed.",
    }
    episode = {
        "id": "ep-1",
        "task_id": "t",
        "state": "trained",
        "reward": 1.0,
        "version_max": 3,
        "turns": [turn],
        "tests": [{"id": "a", "status": "passed", "message": ""}],
    }
    steps = [{"step": n, "metrics": {"reward_mean": n / 10, "pass_rate": 0.1}} for n in (1, 2)]
    return Report(
        "Demo", {"engine": "torch"}, Interval(0.1, 0, 0.2), Interval(0.4, 0.3, 0.5), gain, steps, [episode]
    )


def test_an_honest_verdict_either_way() -> None:
    assert "excludes zero" in make_report(Interval(0.3, 0.1, 0.5)).html()
    assert "includes zero" in make_report(Interval(0.3, -0.1, 0.5)).html()
    assert "includes zero" in make_report(Interval(-0.3, -0.5, -0.1)).html()


def test_what_a_policy_wrote_cannot_script_the_page() -> None:
    page = make_report(Interval(0.3, 0.1, 0.5)).html()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize("points", [[], [(1.0, 1.0)], [(1.0, 0.5), (2.0, 0.5)], [(0.0, -1.0), (9.0, 1.0)]])
def test_charts_of_any_shape(points: list[tuple[float, float]]) -> None:
    chart = line_chart([Series("a", "#000", points)])
    assert chart.count("<circle") == len(points)
    assert "nan" not in chart
