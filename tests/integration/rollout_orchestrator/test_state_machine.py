"""The state machine on a real Postgres, with the other services played by a random, faulty script.

Whatever is delivered twice, late, failed or lost: every admitted episode ends exactly once, every trained
episode is in exactly one step, and no infrastructure failure becomes a reward.
"""

from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import select

from sandpiper.store.db.engine import Sessions
from sandpiper.store.db.models import Episode, Group, Run
from sandpiper.topics import RUN_COMMANDS
from sandpiper.v1 import run_pb2
from tests.integration.rollout_orchestrator.world import World, check_promises, finish, start_run


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("faults", [0.0, 0.25])
async def test_every_episode_ends_exactly_once(sessions: Sessions, seed: int, faults: float) -> None:
    world = World(sessions, seed, faults)
    run_id = await start_run(world)
    run = await finish(world, run_id)
    assert (run.state, run.step) == ("succeeded", 3)
    await check_promises(world, run_id)


async def test_without_faults_nothing_is_retried(sessions: Sessions) -> None:
    world = World(sessions, 1, 0.0)
    run_id = await start_run(world)
    await finish(world, run_id)
    async with sessions() as session:
        attempts = (await session.scalars(select(Episode.attempt).where(Episode.run_id == run_id))).all()
    assert set(attempts) == {1}


async def test_cancel_discards_what_is_in_flight(sessions: Sessions) -> None:
    world = World(sessions, 1, 0.0)
    run_id = await start_run(world)
    await world.sweeper.admit_all()
    await world.deliver(RUN_COMMANDS, run_pb2.RunCommand(run_id=run_id, cancel=run_pb2.CancelRun()))
    run = await finish(world, run_id)
    assert run.state == "cancelled"
    await check_promises(world, run_id)


async def test_an_evaluation_grades_every_task_once(sessions: Sessions) -> None:
    world = World(sessions, 3, 0.1)
    run_id = await start_run(world, mode="eval", samples_per_task=2)
    run = await finish(world, run_id)
    assert run.state == "succeeded"
    async with sessions() as session:
        episodes = (await session.scalars(select(Episode).where(Episode.run_id == run_id))).all()
    graded = Counter(e.task_id for e in episodes if e.state == "graded")
    assert graded == {"t0": 2, "t1": 2, "t2": 2}


async def test_admission_never_exceeds_the_staleness_bound(sessions: Sessions) -> None:
    world = World(sessions, 2, 0.0)
    run_id = await start_run(world)
    for _ in range(60):
        await world.turn_the_crank()
        async with sessions() as session:
            run = await session.get_one(Run, run_id)
            states = (await session.scalars(select(Group.state).where(Group.run_id == run_id))).all()
        if run.finished_at is None:
            counted = sum(state in ("open", "submitted", "trained") for state in states)
            assert counted <= (1 + (run.policy_version or 0) + 1) * 2
