"""How runs end by themselves, and what one bad or paused run must not do to others."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from sandpiper.ids import new_id
from sandpiper.store.db.engine import Sessions
from sandpiper.store.db.models import Episode, Group, Run
from sandpiper.topics import RUN_COMMANDS, TRAJECTORIES
from sandpiper.v1 import run_pb2
from tests.integration.rollout_orchestrator.world import World, check_promises, finish, start_run


async def test_a_run_without_signal_ends(sessions: Sessions) -> None:
    """Filtered groups are refilled, so a policy that solves every task would sample for ever."""
    world = World(sessions, 4, 0.0, reward=1.0)
    run_id = await start_run(world, budget={"steps": 3, "zero_variance_groups": 5})
    run = await finish(world, run_id)
    assert (run.state, run.step) == ("succeeded", 0)
    assert "last 5 groups were all equal (mean 1.00)" in (run.reason or "")
    await check_promises(world, run_id)


async def test_a_run_of_which_every_task_is_quarantined_fails(sessions: Sessions) -> None:
    world = World(sessions, 5, 1.0)
    world.faults = 1.0
    run_id = await start_run(world)
    run = await finish(world, run_id)
    assert run.state == "failed"
    assert "quarantined" in (run.reason or "")


@pytest.mark.parametrize("mode", ["train", "eval"])
async def test_the_episode_budget_ends_either_mode(sessions: Sessions, mode: str) -> None:
    world = World(sessions, 6, 0.0)
    run_id = await start_run(
        world,
        mode=mode,
        samples_per_task=4,
        budget={"steps": 50, "episodes": 9},
        limits={"max_running": 1},  # below one group, which is admitted all the same
    )
    run = await finish(world, run_id)
    assert (run.state, run.reason) == ("succeeded", "episode budget spent")
    async with sessions() as session:
        episodes = (await session.scalars(select(Episode.id).where(Episode.run_id == run_id))).all()
    assert len(episodes) == 8


@pytest.mark.parametrize("mode", ["train", "eval"])
async def test_the_wall_budget_ends_either_mode(sessions: Sessions, mode: str) -> None:
    world = World(sessions, 7, 0.0)
    run_id = await start_run(world, mode=mode, budget={"steps": 50, "wall_s": 30}, limits={"max_running": 1})
    world.clock.now += 31
    run = await finish(world, run_id)
    assert (run.state, run.reason) == ("succeeded", "wall budget spent")


async def test_a_document_that_is_no_longer_valid_stops_no_other_run(sessions: Sessions) -> None:
    world = World(sessions, 8, 0.0)
    run_id = await start_run(world)
    async with sessions.begin() as session:
        run = await session.get_one(Run, run_id)
        copied = {c.name: getattr(run, c.name) for c in Run.__table__.columns}
        session.add(Run(**copied | {"id": new_id("run"), "document": run.document | {"gone": 1}}))
    assert (await finish(world, run_id)).state == "succeeded"


async def test_groups_of_a_paused_run_are_not_sent_again(sessions: Sessions) -> None:
    world = World(sessions, 9, 0.0)
    run_id = await start_run(world)
    await world.deliver(RUN_COMMANDS, run_pb2.RunCommand(run_id=run_id, pause=run_pb2.PauseRun()))
    async with sessions.begin() as session:
        group = Group(
            id="grp-1",
            run_id=run_id,
            index=0,
            task_id="t0",
            state="submitted",
            size=4,
            quorum=3,
            deadline=2e9,
            created_at=0.0,
            submitted_at=0.0,
        )
        session.add(group)
    for command, expected in ((None, 0), (run_pb2.RunCommand(run_id=run_id, resume=run_pb2.ResumeRun()), 1)):
        if command is not None:
            await world.deliver(RUN_COMMANDS, command)
        await world.sweeper.sweep()
        sent = sum(topic is TRAJECTORIES for topic, _ in await world.outbox())
        assert sent == expected
