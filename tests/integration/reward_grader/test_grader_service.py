"""The grader and the executor as services, over a real broker and a real object store."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sandpiper.bus.consumer import Consumer
from sandpiper.bus.message import Outgoing, Received
from sandpiper.bus.producer import Producer
from sandpiper.ids import new_id
from sandpiper.service import Stack
from sandpiper.store.objects import ObjectStore
from sandpiper.store.snapshots import put_snapshot
from sandpiper.tasks.archive import write_archive
from sandpiper.tasks.model import Task
from sandpiper.topics import GRADING_REQUESTS, GRADING_RESULTS
from sandpiper.v1.common_pb2 import EpisodeRef
from sandpiper.v1.grading_pb2 import EpisodeGraded, GradeEpisode
from services.reward_grader import wiring as grader
from services.reward_grader.config import GraderSettings
from services.reward_grader.evidence import Evidence
from services.sandbox_executor import wiring as executor
from services.sandbox_executor.config import ExecutorSettings
from tests.stack import RunningStack

TASK = Task.model_validate(
    {
        "id": "t",
        "family": "t",
        "language": "python",
        "instruction": "x",
        "workspace": {"solution.py": "def add(a, b): return 0\n"},
        "solution_path": "solution.py",
        "visible": {"runner": "asserts", "files": {"test_visible.py": "def test(): pass\n"}},
        "hidden": {
            "runner": "asserts",
            "files": {
                "test_hidden.py": "from solution import add\n"
                "def test_a(): assert add(1, 2) == 3\n"
                "def test_b(): assert add(0, 0) == 0\n"
            },
        },
        "reference": {"solution.py": "def add(a, b): return a + b\n"},
        "limits": {"wall_s": 30},
    }
)
WAIT_S = 90.0


class Client:
    """Sends requests as the orchestrator does and collects results."""

    def __init__(self, producer: Producer, objects: ObjectStore) -> None:
        self._producer, self._objects = producer, objects
        self.results: list[EpisodeGraded] = []
        self._news = asyncio.Event()

    async def taken(self, received: Received[EpisodeGraded]) -> None:
        self.results.append(received.message)
        self._news.set()

    async def ask(
        self, solution: str | None, *, deadline_s: float = WAIT_S, request_id: str | None = None
    ) -> str:
        """Ask for a grading of a workspace; None: nothing was ever written."""
        request = GradeEpisode(request_id=request_id or new_id("req"), deadline=time.time() + deadline_s)
        request.ref.CopyFrom(EpisodeRef(run_id="r", episode_id=new_id("ep"), attempt=1))
        task = await self._objects.put_by_digest("tasks", TASK.model_dump_json().encode(), ".json")
        request.task.CopyFrom(task)
        if solution is not None:
            archive = write_archive(
                {"solution.py": solution.encode(), "test_hidden.py": b"def test_a(): pass\n"}
            )
            request.snapshot.CopyFrom(await put_snapshot(self._objects, archive))
        await self._producer.send(Outgoing(GRADING_REQUESTS, request, key=request.ref.episode_id))
        return request.request_id

    async def answer(self, request_id: str, count: int = 1) -> list[EpisodeGraded]:
        """The first `count` results of a request."""
        async with asyncio.timeout(WAIT_S):
            while len(found := [r for r in self.results if r.request_id == request_id]) < count:
                self._news.clear()
                await self._news.wait()
        return found


class Services:
    """Services of this process, started one by one."""

    def __init__(self, infra: RunningStack, folder: Path) -> None:
        self._infra, self._folder = infra, folder
        self._stacks: list[Stack] = []

    async def _start(self, name: str, start: Callable[[Stack], Any]) -> None:
        stack = Stack(name)
        self._stacks.append(stack)
        for work in await start(stack):
            stack.spawn(work)

    async def grader(self) -> None:
        settings = GraderSettings(bus=self._infra.bus, objects=self._infra.objects)
        await self._start("reward-grader", partial(grader.start, settings))

    async def executor(self) -> None:
        settings = ExecutorSettings(
            bus=self._infra.bus, objects=self._infra.objects, data_dir=self._folder, heartbeat_s=0.5, slots=2
        )
        await self._start("sandbox-executor", partial(executor.start, settings))

    async def stop(self) -> None:
        for stack in reversed(self._stacks):
            stack.stop()
            await stack.drain(5.0, asyncio.Event())
            await stack.close()
        assert not any(stack.failed for stack in self._stacks)


@pytest_asyncio.fixture
async def services(infra: RunningStack) -> AsyncIterator[Services]:
    folder = Path(tempfile.mkdtemp(prefix="sandpiper-grader-"))
    folder.chmod(0o755)
    started = Services(infra, folder)
    try:
        yield started
    finally:
        await started.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest_asyncio.fixture
async def client(infra: RunningStack, objects: ObjectStore) -> AsyncIterator[Client]:
    producer = Producer(infra.bus, objects)
    await producer.start()
    made = Client(producer, objects)
    consumer = Consumer(
        infra.bus, None, {GRADING_RESULTS: made.taken}, producer, objects, broadcast=True, from_beginning=True
    )
    running = asyncio.create_task(consumer.run())
    try:
        yield made
    finally:
        await consumer.stop(2.0)
        await asyncio.wait({running}, timeout=5.0)
        await producer.stop()


@pytest.mark.timeout(300)
async def test_verdicts_come_back_with_evidence(
    services: Services, client: Client, objects: ObjectStore
) -> None:
    await services.grader()
    await services.executor()
    expected = {
        TASK.reference["solution.py"]: (1.0, "passed"),
        "def add(a, b:\n": (-0.5, "syntax_error"),
        "def add(a, b): return 0\n": (0.0, "failed_tests"),
        "def add(a, b): return {}[a]\n": (-0.2, "error"),
        None: (0.0, "failed_tests"),
    }
    asked = {solution: await client.ask(solution) for solution in expected}
    for solution, (value, verdict) in expected.items():
        (graded,) = await client.answer(asked[solution])
        assert (graded.has_reward, graded.verdict) == (True, verdict), graded
        assert graded.reward == pytest.approx(value)
        evidence = Evidence.model_validate_json(await objects.get(graded.evidence))
        assert evidence.verdict == verdict
        assert evidence.execution is not None
        assert evidence.execution.cpu_s > 0
        assert graded.grader_version == evidence.grader_version


@pytest.mark.timeout(300)
async def test_a_request_waits_for_an_executor_and_a_repeated_one_gets_the_first_answer(
    services: Services, client: Client
) -> None:
    await services.grader()
    request_id = await client.ask(TASK.reference["solution.py"])
    hopeless = await client.ask(TASK.reference["solution.py"], deadline_s=1.0)
    (late,) = await client.answer(hopeless)
    assert (late.has_reward, late.failure.boundary) == (False, "deadline")
    assert not [result for result in client.results if result.request_id == request_id]
    await services.executor()
    (first,) = await client.answer(request_id)
    assert first.passed
    await client.ask("def add(a, b): return 7\n", request_id=request_id)
    again = (await client.answer(request_id, count=2))[1]
    assert again.SerializeToString(deterministic=True) == first.SerializeToString(deterministic=True)
