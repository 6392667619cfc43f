"""The decomposition adds up."""

from __future__ import annotations

import pytest

from sandpiper.bench.loop import LoopTimes, episode_times, percentile, summary


def episode() -> dict:
    turn = {
        "requested_at": 100.0,
        "generated_at": 103.0,
        "generate_s": 2.0,
        "generate_queued_s": 0.5,
        "executed_at": 104.0,
        "usage": {"wall_s": 0.2, "setup_s": 0.1, "queued_s": 0.3},
    }
    return {
        "created_at": 100.0,
        "turns": [turn],
        "attempts": [{"state": "failed", "ended_at": 1.0}, {"state": "done", "ended_at": 105.0}],
    }


def test_stages_add_up_to_the_time_of_the_episode() -> None:
    times = LoopTimes()
    episode_times(times, episode())
    assert sum(times.stages.values()) == pytest.approx(5.0)
    assert times.stages["grading"] == pytest.approx(1.0)
    assert times.turn_overhead_s == [pytest.approx(4.0 - 2.5 - 0.6)]
    assert sum(times.shares().values()) == pytest.approx(1.0)


def test_an_episode_without_a_verdict_does_not_count() -> None:
    times = LoopTimes()
    episode_times(times, episode() | {"attempts": []})
    assert times.episodes == 0


def test_summary_has_the_keys_that_users_read() -> None:
    times = LoopTimes()
    episode_times(times, episode())
    result = summary(times, {"started_at": 0.0, "finished_at": 10.0}, [{"seconds": 4.0}])
    assert result["learning_share_of_wall"] == 0.4
    assert result["episodes_per_s"] == 0.1


def test_percentiles() -> None:
    assert percentile([], 0.5) == 0.0
    assert percentile(list(range(100)), 0.99) == 99
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
