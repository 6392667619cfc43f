"""The staleness bound and the task cursor."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from services.rollout_orchestrator.admission import capacity, task_at
from services.rollout_orchestrator.states import LEGAL, TERMINAL, EpisodeState


@given(st.integers(1, 8), st.integers(0, 4), st.integers(0, 50), st.integers(0, 500))
def test_admission_keeps_the_bound(k: int, eta: int, version: int, counted: int) -> None:
    room = capacity(k, eta, version, counted)
    assert room >= 0
    assert counted >= (eta + version + 1) * k or counted + room == (eta + version + 1) * k


@given(st.integers(1, 12), st.integers(0, 5), st.integers(0, 9))
def test_every_epoch_visits_each_task_once(count: int, epoch: int, seed: int) -> None:
    tasks = [SimpleNamespace(id=str(n)) for n in range(count)]
    seen = [task_at(tasks, epoch * count + i, seed).id for i in range(count)]  # type: ignore[arg-type]
    assert sorted(seen) == sorted(task.id for task in tasks)


def test_terminal_states_have_no_way_out() -> None:
    assert all(LEGAL[state] == () for state in TERMINAL)
    assert set(LEGAL) == set(EpisodeState)
