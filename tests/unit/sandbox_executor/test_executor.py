"""One command: which workspace, what goes into the result, what is whose fault."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from sandpiper.v1 import sandbox_pb2 as pb
from sandpiper.v1.common_pb2 import EpisodeRef
from services.sandbox_executor.archives import Archives
from services.sandbox_executor.backend.protocol import CreateFailed, Refused, SandboxLost
from services.sandbox_executor.config import Ceilings
from services.sandbox_executor.executor import Executor
from services.sandbox_executor.leases import Leases
from tests.unit.sandbox_executor.executor_fakes import FakeBackend, FakeClock, FakeObjects
from tests.unit.sandbox_executor.test_outcome import CLEAN


class World:
    def __init__(self, slots: int = 4) -> None:
        self.backend, self.clock, self.objects = FakeBackend(), FakeClock(), FakeObjects()
        self.leases = Leases(self.backend, self.clock, 100, 8)
        archives = Archives(self.objects, 1 << 20)  # type: ignore[arg-type]
        self.executor = Executor(
            self.leases, archives, self.objects, self.clock, Ceilings(), slots  # type: ignore[arg-type]
        )  # fmt: skip

    async def run(self, **fields: Any) -> pb.SandboxResult:
        values = {"command_id": "c", "sandbox_id": "s", "argv": ["x"], "snapshot": True, **fields}
        return await self.executor.execute(pb.SandboxCommand(**values), self.clock.now)


def files(*names: str) -> list[pb.FileWrite]:
    return [pb.FileWrite(path=name, content=b"x") for name in names]


async def test_a_workspace_goes_on_where_its_snapshot_says_so() -> None:
    world = World()
    first = await world.run(files=files("a"))
    second = await world.run(files=files("b"), base=first.snapshot)
    assert len(world.backend.made) == 1
    assert world.backend.made[0].files == ["a", "b"]
    assert second.snapshot.sha256 != first.snapshot.sha256


async def test_another_base_means_another_sandbox() -> None:
    world = World()
    first = await world.run(files=files("a"))
    await world.run(files=files("b"), base=first.snapshot)
    await world.run(files=files("c"), base=first.snapshot)
    await world.run(files=files("d"))
    assert [made.files for made in world.backend.made] == [["a", "b"], ["a", "c"], ["d"]]
    await world.leases.close()
    assert world.backend.destroyed == ["s", "s", "s"]


async def test_without_a_snapshot_the_state_is_unknown_and_the_next_command_starts_from_its_base() -> None:
    world = World()
    first = await world.run(files=files("a"))
    await world.run(files=files("b"), base=first.snapshot, snapshot=False)
    await world.run(files=files("c"), base=first.snapshot)
    assert [made.files for made in world.backend.made] == [["a", "b"], ["a", "c"]]


async def test_another_disk_size_means_another_sandbox() -> None:
    world = World()
    first = await world.run(files=files("a"))
    await world.run(base=first.snapshot, limits=pb.ExecutionLimits(disk_bytes=1 << 20))
    assert [made.spec.disk_bytes for made in world.backend.made] == [32 << 20, 1 << 20]


async def test_keep_always_starts_fresh_and_takes_only_what_it_names() -> None:
    world = World()
    first = await world.run(files=files("a", "evil"))
    await world.run(base=first.snapshot, keep=["a"])
    assert [made.files for made in world.backend.made] == [["a", "evil"], ["a"]]


async def test_destroy_frees_the_sandbox() -> None:
    world = World()
    await world.run(destroy=True)
    await asyncio.sleep(0)
    assert world.backend.destroyed == ["s"]
    assert world.leases.live == 0


async def test_files_without_a_program() -> None:
    world = World()
    result = await world.run(argv=[], files=files("a"))
    assert (result.outcome, world.backend.runs) == (pb.OUTCOME_OK, [])
    assert result.snapshot.sha256


async def test_creation_is_tried_once_more() -> None:
    world = World()
    world.backend.failures["create"] = [CreateFailed("busy", "x")]
    assert (await world.run()).outcome == pb.OUTCOME_OK
    world.backend.failures["create"] = [CreateFailed("busy", "x"), CreateFailed("busy", "y")]
    result = await world.run(sandbox_id="t")
    assert (result.outcome, result.failure.boundary, result.failure.reason) == (
        pb.OUTCOME_INFRA_ERROR,
        "sandbox",
        "busy",
    )


async def test_a_sandbox_lost_while_it_is_filled_is_replaced() -> None:
    world = World()
    world.backend.failures["write"] = [SandboxLost("gone", "x")]
    result = await world.run(files=files("a"))
    assert result.outcome == pb.OUTCOME_OK
    assert len(world.backend.made) == 2


async def test_a_program_is_never_run_twice() -> None:
    world = World()
    world.backend.failures["run"] = [SandboxLost("gone", "x")]
    result = await world.run()
    assert (result.outcome, result.failure.reason) == (pb.OUTCOME_INFRA_ERROR, "gone")
    assert len(world.backend.runs) == 1
    await asyncio.sleep(0)
    assert world.backend.destroyed == ["s"]


async def test_a_refused_path_is_no_verdict() -> None:
    world = World()
    world.backend.failures["write"] = [Refused("bad_path", "../x")]
    result = await world.run(files=files("a"))
    assert (result.outcome, result.failure.reason) == (pb.OUTCOME_INFRA_ERROR, "bad_path")
    assert world.backend.runs == []


async def test_files_that_do_not_fit_are_the_programs_fault() -> None:
    world = World()
    world.backend.failures["write"] = [Refused("no_space", "x")]
    result = await world.run(files=files("a"))
    assert result.outcome == pb.OUTCOME_DISK_LIMIT
    assert world.backend.runs == []
    assert not result.HasField("failure")


async def test_a_snapshot_that_is_too_big_is_a_disk_limit() -> None:
    world = World()
    world.backend.failures["snapshot"] = [Refused("too_big", "9 bytes")]
    result = await world.run()
    assert (result.outcome, result.HasField("snapshot")) == (pb.OUTCOME_DISK_LIMIT, False)
    assert b"9 bytes" in result.stderr


async def test_the_store_is_its_own_boundary() -> None:
    world = World()
    first = await world.run(files=files("a"))
    world.objects.data.clear()
    missing = pb.SandboxCommand(base=first.snapshot).base
    missing.sha256 = "0" * 64
    missing.uri = world.objects.uri("snapshots/0")
    assert (await world.run(base=missing)).failure.boundary == "store"
    world.objects.away = True
    result = await world.run(base=missing)
    assert (result.failure.boundary, result.failure.reason) == ("store", "unavailable")


async def test_a_refused_command_creates_nothing() -> None:
    world = World()
    result = await world.run(limits=pb.ExecutionLimits(pids=10**6))
    assert (result.failure.reason, world.backend.made) == ("bad_command", [])


async def test_a_bug_is_an_infrastructure_failure() -> None:
    world = World()
    world.backend.evidence = replace(CLEAN, stop="nonsense")  # type: ignore[arg-type]
    result = await world.run()
    assert (result.outcome, result.failure.reason) == (pb.OUTCOME_INFRA_ERROR, "internal")


async def test_what_was_said_is_kept_as_one_object_for_episodes_only() -> None:
    world = World()
    world.backend.evidence = replace(CLEAN, stdout=b"out", stderr=b"err")
    result = await world.run(ref=EpisodeRef(episode_id="e"))
    assert world.objects.data["logs/c"] == b"out\n--- stderr ---\nerr"
    assert result.log.uri.endswith("logs/c")
    assert not (await world.run(command_id="d")).HasField("log")


async def test_slots_bound_what_runs_and_waiting_is_counted() -> None:
    world = World(slots=2)
    most = 0

    async def busy() -> None:
        nonlocal most
        most = max(most, world.executor.load.running)
        await asyncio.sleep(0.01)

    world.backend.on_run = busy
    runs = [asyncio.create_task(world.run(sandbox_id=f"s{number}")) for number in range(6)]
    await asyncio.sleep(0.005)
    assert (world.executor.load.running, world.executor.load.queued) == (2, 4)
    await asyncio.gather(*runs)
    assert most == 2
    assert (world.executor.load.running, world.executor.load.queued) == (0, 0)


async def test_a_cancelled_command_gives_everything_back() -> None:
    world = World(slots=1)
    world.backend.on_run = lambda: asyncio.sleep(60)
    runs = [asyncio.create_task(world.run(sandbox_id=f"s{number}")) for number in range(2)]
    await asyncio.sleep(0.01)
    for run in runs:
        run.cancel()
    await asyncio.gather(*runs, return_exceptions=True)
    await asyncio.sleep(0)
    assert (world.executor.load.running, world.executor.load.queued) == (0, 0)
    assert world.backend.destroyed == ["s0"]
    world.backend.on_run = None
    assert (await world.run()).outcome == pb.OUTCOME_OK


async def test_queue_time_is_reported() -> None:
    world = World()
    result = await world.executor.execute(pb.SandboxCommand(sandbox_id="s", argv=["x"]), world.clock.now - 7)
    assert result.usage.queued_s == pytest.approx(7)
    assert result.usage.wall_s == CLEAN.wall_s
