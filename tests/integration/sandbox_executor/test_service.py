"""The executor as a process: commands in, results out, over the embedded broker and object store."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from sandpiper.bus.consumer import Consumer
from sandpiper.bus.message import Outgoing, Received
from sandpiper.bus.producer import Producer
from sandpiper.ids import new_id
from sandpiper.store.objects import ObjectStore
from sandpiper.topics import EXECUTOR_HEARTBEATS, SANDBOX_COMMANDS, SANDBOX_RESULTS, dlq_of
from sandpiper.v1 import sandbox_pb2 as pb
from sandpiper.v1.common_pb2 import Blob, EpisodeRef
from sandpiper.v1.sandbox_pb2 import ExecutorHeartbeat
from tests.integration.sandbox_executor.backends import processes_of
from tests.stack import RunningStack, start_stack

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATIENCE_S = 60.0


@dataclass
class Client:
    """Sends commands and sees all that comes back."""

    stack: RunningStack
    producer: Producer
    objects: ObjectStore
    results: list[pb.SandboxResult] = field(default_factory=list)
    beats: dict[str, ExecutorHeartbeat] = field(default_factory=dict)
    dead: list[Any] = field(default_factory=list)

    async def send(
        self, command: pb.SandboxCommand, partition: int = 0, deadline: float | None = None
    ) -> None:
        out = Outgoing(
            SANDBOX_COMMANDS, command, key=command.command_id, partition=partition, deadline=deadline
        )
        await self.producer.send(out)

    async def results_of(self, command: pb.SandboxCommand, count: int = 1) -> list[pb.SandboxResult]:
        def found() -> list[pb.SandboxResult]:
            return [result for result in self.results if result.command_id == command.command_id]

        await self.until(lambda: len(found()) >= count)
        return found()

    async def run(self, command: pb.SandboxCommand, partition: int = 0) -> pb.SandboxResult:
        await self.send(command, partition)
        return (await self.results_of(command))[0]

    async def until(self, condition: Callable[[], object], within: float = PATIENCE_S) -> None:
        async with asyncio.timeout(within):
            while not condition():
                await asyncio.sleep(0.02)

    def owners(self) -> dict[int, str]:
        """Partition -> executor, by the newest heartbeats."""
        fresh = [beat for beat in self.beats.values() if time.time() - beat.sent_at < 5]
        return {partition: beat.executor_id for beat in fresh for partition in beat.partitions}

    async def settled(self, executors: int) -> dict[int, str]:
        """Wait until so many executors own all partitions between them."""
        await self.until(lambda: len(self.owners()) == 32 and len(set(self.owners().values())) == executors)
        return self.owners()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    """Two executors, a broker and an object store; and a client."""
    stack = await asyncio.to_thread(
        start_stack, tmp_path_factory.mktemp("stack"), replicas={"sandbox-executor": 2}
    )
    async with contextlib.AsyncExitStack() as closing:
        closing.push_async_callback(asyncio.to_thread, stack.stop)
        objects = ObjectStore(stack.objects)
        closing.push_async_callback(objects.close)
        await objects.start()
        producer = Producer(stack.bus, objects)
        closing.push_async_callback(producer.stop)
        await producer.start()
        client = Client(stack, producer, objects)

        async def result(received: Received[Any]) -> None:
            client.results.append(received.message)

        async def beat(received: Received[Any]) -> None:
            client.beats[received.message.executor_id] = received.message

        async def dead(received: Received[Any]) -> None:
            client.dead.append(received.message)

        handlers = {SANDBOX_RESULTS: result, EXECUTOR_HEARTBEATS: beat, dlq_of(SANDBOX_COMMANDS): dead}
        consumer = Consumer(stack.bus, None, handlers, producer, objects, broadcast=True, from_beginning=True)
        running = asyncio.create_task(consumer.run())
        closing.push_async_callback(consumer.stop)
        await client.settled(2)
        yield client
        assert not running.done()


def command(script: str = "", **fields: Any) -> pb.SandboxCommand:
    """A command that runs a shell script for a new episode."""
    values: dict[str, Any] = {
        "command_id": new_id("cmd"),
        "ref": EpisodeRef(run_id="r", episode_id="e", attempt=1),
        "reply_topic": SANDBOX_RESULTS.name,
        "reply_key": "e",
        "sandbox_id": new_id("sb"),
        "argv": ["/bin/sh", "-c", script] if script else [],
        "limits": pb.ExecutionLimits(wall_s=20, cpu_s=10, memory_bytes=128 << 20, disk_bytes=8 << 20),
        "context": b"opaque",
    }
    return pb.SandboxCommand(**{**values, **fields})


async def test_a_command_is_answered_in_full(client: Client) -> None:
    asked = command(
        "cat a/b; echo oops >&2; exit 4", files=[pb.FileWrite(path="a/b", content=b"hello\n")], snapshot=True
    )
    result = await client.run(asked, partition=7)
    assert result.outcome == pb.OUTCOME_NONZERO_EXIT
    assert (result.exit_code, result.stdout, result.stderr) == (4, b"hello\n", b"oops\n")
    assert (result.context, result.partition, result.ref) == (b"opaque", 7, asked.ref)
    assert result.executor_id == client.owners()[7]
    assert result.usage.setup_s > 0
    assert result.usage.wall_s > 0
    assert result.usage.source in ("cgroup-v1", "cgroup-v2", "rusage")
    assert result.snapshot.uri.endswith(f"snapshots/{result.snapshot.sha256}")
    assert await client.objects.get(result.log) == b"hello\n\n--- stderr ---\noops\n"


async def test_another_executor_continues_from_the_snapshot(client: Client) -> None:
    owners = await client.settled(2)
    here = 0
    there = next(partition for partition, owner in owners.items() if owner != owners[here])
    first = await client.run(command("echo one > f", snapshot=True, sandbox_id="moving"), here)
    second = command("echo two >> f", snapshot=True, sandbox_id="moving", base=first.snapshot)
    again = await client.run(second, here)
    third = await client.run(command("cat f", sandbox_id="moving", base=again.snapshot), there)
    assert third.stdout == b"one\ntwo\n"
    assert third.executor_id != again.executor_id
    rewound = await client.run(command("cat f", sandbox_id="moving", base=first.snapshot), here)
    assert rewound.stdout == b"one\n"
    fresh = await client.run(command("ls -A", sandbox_id="moving"), here)
    assert (fresh.outcome, fresh.stdout) == (pb.OUTCOME_OK, b"")


async def test_grading_takes_only_what_it_keeps(client: Client) -> None:
    files = [
        pb.FileWrite(path="solution.py", content=b"s"),
        pb.FileWrite(path="conftest.py", content=b"evil"),
    ]
    played = await client.run(command("true", files=files, snapshot=True, destroy=True))
    tests = await client.run(command(files=[pb.FileWrite(path="tests/t.py", content=b"t")], snapshot=True))
    assert tests.outcome == pb.OUTCOME_OK
    graded = await client.run(
        command(
            "find . -type f | sort", base=played.snapshot, keep=["solution.py"], files_archive=tests.snapshot
        )
    )
    assert graded.stdout == b"./solution.py\n./tests/t.py\n"


async def test_a_command_that_comes_twice_runs_once(client: Client) -> None:
    asked = command("cat /proc/sys/kernel/random/uuid; sleep 0.3")
    await client.send(asked, 3)
    await client.send(asked, 3)
    first, second = await client.results_of(asked, 2)
    assert len(first.stdout) == 37
    assert first.stdout == second.stdout
    await client.send(asked, 4)
    assert (await client.results_of(asked, 3))[2].stdout == first.stdout


async def test_an_expired_command_is_answered_and_not_run(client: Client) -> None:
    asked = command("echo ran")
    await client.send(asked, deadline=time.time() - 1)
    result = (await client.results_of(asked))[0]
    assert (result.outcome, result.failure.boundary, result.stdout) == (
        pb.OUTCOME_INFRA_ERROR,
        "deadline",
        b"",
    )


async def test_a_snapshot_that_is_gone_is_no_verdict(client: Client) -> None:
    missing = Blob(uri=client.objects.uri("snapshots/" + "0" * 64), sha256="0" * 64, bytes=9)
    result = await client.run(command("true", base=missing))
    assert (result.outcome, result.failure.boundary) == (pb.OUTCOME_INFRA_ERROR, "store")


async def test_a_bad_path_is_no_verdict(client: Client) -> None:
    result = await client.run(command("true", files=[pb.FileWrite(path="../x")]))
    assert (result.failure.boundary, result.failure.reason) == ("sandbox", "bad_path")


async def test_nobody_to_answer_goes_to_the_dead_letters(client: Client) -> None:
    asked = command("true", reply_topic="inference.results")
    await client.send(asked)
    await client.until(lambda: any(asked.command_id.encode() in letter.value for letter in client.dead))


async def test_heartbeats_say_what_there_is(client: Client) -> None:
    await client.settled(2)
    beats = [beat for beat in client.beats.values() if time.time() - beat.sent_at < 5]
    assert sorted(partition for beat in beats for partition in beat.partitions) == list(range(32))
    for beat in beats:
        assert beat.capacity >= 1
        assert beat.backend == "bubblewrap"
        assert "net" in beat.isolation.split()
        assert "python" in beat.images
        assert beat.memory_total_bytes > beat.memory_used_bytes > 0
        assert beat.disk_free_bytes > 0


async def test_load_is_bounded_and_queueing_is_not_charged(client: Client) -> None:
    asked = [command("sleep 0.3", limits=pb.ExecutionLimits(wall_s=5)) for _ in range(24)]
    await asyncio.gather(*(client.send(one, 5) for one in asked))
    results = [(await client.results_of(one))[0] for one in asked]
    assert {result.outcome for result in results} == {pb.OUTCOME_OK}
    assert max(result.usage.queued_s for result in results) > 0.3


async def test_a_killed_executor_loses_no_command(client: Client) -> None:
    owners = await client.settled(2)
    victim = client.stack.process("sandbox-executor-2")
    assert victim.pid is not None
    before = {beat.executor_id for beat in client.beats.values()}
    theirs = await _partition_of(client, victim.pid, owners)
    asked = command("sleep 2; echo survived")
    await client.send(asked, theirs)
    await asyncio.sleep(1)
    os.kill(victim.pid, signal.SIGKILL)
    result = (await client.results_of(asked))[0]
    assert (result.outcome, result.stdout) == (pb.OUTCOME_OK, b"survived\n")
    await client.until(lambda: processes_of(f"-{victim.pid}-") == [])
    await client.until(lambda: set(client.owners().values()) - before, within=120)


async def _partition_of(client: Client, pid: int, owners: dict[int, str]) -> int:
    """A partition that the process owns: a running command shows under its executor's marker."""
    for partition in (0, next(number for number, owner in owners.items() if owner != owners[0])):
        asked = command("sleep 3")
        await client.send(asked, partition)
        with contextlib.suppress(TimeoutError):
            await client.until(lambda: processes_of(f"-{pid}-"), within=2)
            return partition
        await client.results_of(asked)
    raise AssertionError("no partition belongs to the process")
