"""Both halves of a grading: idempotent, stateless between them, always answered."""

from __future__ import annotations

from typing import Any

import pytest

from sandpiper.bus.errors import Reject, Retry
from sandpiper.bus.message import Headers, Outgoing, Received
from sandpiper.ids import derived_id
from sandpiper.runners import codec
from sandpiper.store.results import ResultStore
from sandpiper.tasks.model import Task
from sandpiper.topics import (
    GRADING_REQUESTS,
    GRADING_RESULTS,
    SANDBOX_COMMANDS,
    SANDBOX_RESULTS_GRADER,
    Topic,
)
from sandpiper.v1 import sandbox_pb2 as pb
from sandpiper.v1.common_pb2 import Blob, Failure
from services.reward_grader.evidence import Evidence
from services.reward_grader.handlers import Grader
from services.reward_grader.requests import Context, command_id, nonce
from services.reward_grader.tasks import Tasks
from tests.unit.reward_grader.grading_parts import (
    KEY,
    NONCE,
    REQUEST,
    MemoryObjects,
    make_task,
    report,
    request,
    result,
)


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


class FakePlaces:
    def __init__(self, partition: int | None = 3) -> None:
        self.partition = partition
        self.beats: list[pb.ExecutorHeartbeat] = []

    def observe(self, beat: pb.ExecutorHeartbeat) -> None:
        self.beats.append(beat)

    def choose(self, affinity: int | None) -> int | None:
        return self.partition


class FakeProducer:
    def __init__(self) -> None:
        self.sent: list[Outgoing] = []

    async def send(self, out: Outgoing) -> None:
        out.encode()
        self.sent.append(out)

    def of(self, topic: Topic) -> list[Any]:
        return [out.message for out in self.sent if out.topic is topic]


class Stage:
    """A grader on fakes."""

    def __init__(self, partition: int | None = 3) -> None:
        self.objects, self.producer, self.clock = MemoryObjects(), FakeProducer(), FakeClock()
        self.places = FakePlaces(partition)
        self.grader = self.make()

    def make(self) -> Grader:
        """Another replica over the same store."""
        objects: Any = self.objects
        return Grader(
            tasks=Tasks(objects, 8),
            objects=objects,
            stored=ResultStore(objects, "reward-grader"),
            producer=self.producer,
            placement=self.places,
            clock=self.clock,
            nonce_key=KEY,
            version="test",
        )

    async def task(self, task: Task | None = None) -> Blob:
        return await self.objects.put("tasks/t", (task or make_task()).model_dump_json().encode())

    @property
    def graded(self) -> list[Any]:
        return self.producer.of(GRADING_RESULTS)


def received(topic: Topic, message: Any, at: float = 990.0) -> Received[Any]:
    return Received(topic, message, Headers("m1", deadline=None), "ep-1", 0, 0, at)


SNAPSHOT = Blob(uri="s3://b/snapshots/x", sha256="c" * 64, bytes=5)


async def sent_command(stage: Stage, **fields: Any) -> pb.SandboxCommand:
    blob = await stage.task()
    fields = {"snapshot": SNAPSHOT} | fields
    await stage.grader.requested(received(GRADING_REQUESTS, request(blob, **fields)))
    return stage.producer.of(SANDBOX_COMMANDS)[0]


async def test_a_request_becomes_one_command_in_a_fresh_sandbox() -> None:
    stage = Stage()
    command = await sent_command(stage)
    out = stage.producer.sent[0]
    assert (out.partition, out.deadline) == (3, 2000.0)
    assert command.command_id == command_id(REQUEST) == command.sandbox_id
    assert command.reply_topic == SANDBOX_RESULTS_GRADER.name
    assert list(command.keep) == ["solution.py"]
    assert command.base == SNAPSHOT
    assert (command.destroy, command.private_channel, command.snapshot) == (True, True, False)
    assert [file.path for file in command.files] == ["helper.py"]
    assert command.limits.wall_s > make_task().limits.wall_s
    assert codec.decode(command.private_input)["nonce"] == NONCE


async def test_the_secrets_are_only_in_the_private_input() -> None:
    command = await sent_command(Stage())
    command.private_input = b""
    visible = command.SerializeToString()
    assert NONCE.encode() not in visible
    assert b"test_hidden.py" not in visible
    assert nonce(b"other", REQUEST) != NONCE


async def test_an_untouched_workspace_is_graded_as_it_was_given() -> None:
    stage = Stage()
    blob = await stage.task(make_task(workspace={"solution.py": "stub = 1\n", "helper.py": "y = 1\n"}))
    await stage.grader.requested(received(GRADING_REQUESTS, request(blob)))
    command = stage.producer.of(SANDBOX_COMMANDS)[0]
    assert not command.HasField("base")
    assert {file.path: file.content for file in command.files}["solution.py"] == b"stub = 1\n"


async def test_without_any_artifact_nothing_is_run() -> None:
    stage = Stage()
    blob = await stage.task()
    await stage.grader.requested(received(GRADING_REQUESTS, request(blob)))
    assert stage.producer.of(SANDBOX_COMMANDS) == []
    (graded,) = stage.graded
    assert (graded.has_reward, graded.verdict, graded.passed) == (True, "missing_artifact", False)
    assert graded.reward == pytest.approx(-0.2)


async def test_no_executor_waits_and_then_fails_typed() -> None:
    stage = Stage(partition=None)
    blob = await stage.task()
    message = received(GRADING_REQUESTS, request(blob, snapshot=SNAPSHOT))
    with pytest.raises(Retry):
        await stage.grader.requested(message)
    assert stage.producer.sent == []
    stage.clock.now = 2001.0
    await stage.grader.requested(message)
    (graded,) = stage.graded
    assert not graded.has_reward
    assert (graded.failure.boundary, graded.failure.reason) == ("deadline", "expired")
    assert graded.outcome == pb.OUTCOME_INFRA_ERROR


async def test_the_second_half_needs_no_memory_of_the_first() -> None:
    stage = Stage()
    command = await sent_command(stage)
    other = stage.make()
    answer = result(report("ok", "assertion", "ok", "ok"), context=command.context)
    await other.executed(received(SANDBOX_RESULTS_GRADER, answer))
    (graded,) = stage.graded
    assert (graded.has_reward, graded.passed, graded.verdict) == (True, False, "failed_tests")
    assert graded.reward == pytest.approx(-0.1 + 0.2 * 3 / 4)
    assert graded.seconds == pytest.approx(10.0)
    assert [test.status for test in graded.tests] == ["passed", "failed", "passed", "passed"]
    assert graded.parts[0].name == "functional"
    stored = await stage.objects.get(graded.evidence)
    assert Evidence.model_validate_json(stored).verdict == "failed_tests"
    assert graded.ref.episode_id == "ep-1"


async def test_redelivery_is_answered_alike_and_runs_nothing_twice() -> None:
    stage = Stage()
    command = await sent_command(stage)
    answer = received(SANDBOX_RESULTS_GRADER, result(report(*["ok"] * 4), context=command.context))
    await stage.grader.executed(answer)
    stage.clock.now += 50
    await stage.make().executed(answer)
    worse = result(report(*["assertion"] * 4), context=command.context)
    await stage.make().executed(received(SANDBOX_RESULTS_GRADER, worse))
    await stage.grader.requested(received(GRADING_REQUESTS, Context.unpack(command.context).request))
    assert len(stage.producer.of(SANDBOX_COMMANDS)) == 1
    assert len(stage.graded) == 4
    assert all(graded == stage.graded[0] for graded in stage.graded)
    ids = {out.message_id for out in stage.producer.sent if out.topic is GRADING_RESULTS}
    assert ids == {derived_id("graded", REQUEST)}


async def test_infrastructure_failures_are_never_a_reward() -> None:
    stage = Stage()
    command = await sent_command(stage)
    failure = Failure(boundary="sandbox", reason="no_space", detail="d")
    answer = result(b"", pb.OUTCOME_INFRA_ERROR, failure=failure, context=command.context)
    await stage.grader.executed(received(SANDBOX_RESULTS_GRADER, answer))
    (graded,) = stage.graded
    assert (graded.has_reward, graded.reward, graded.verdict) == (False, 0.0, "")
    assert graded.failure == failure


@pytest.mark.parametrize(
    ("data", "boundary", "reason"),
    [(None, "store", "MissingObject"), (b"{}", "grading", "bad_task"), (b"\xff", "grading", "bad_task")],
)
async def test_a_task_that_cannot_be_read(data: bytes | None, boundary: str, reason: str) -> None:
    stage = Stage()
    blob = Blob(uri="s3://b/tasks/gone", sha256="d" * 64, bytes=2)
    if data is not None:
        blob = await stage.objects.put("tasks/bad", data)
    await stage.grader.requested(received(GRADING_REQUESTS, request(blob, snapshot=SNAPSHOT)))
    (graded,) = stage.graded
    assert not graded.has_reward
    assert (graded.failure.boundary, graded.failure.reason) == (boundary, reason)


async def test_a_bad_reward_is_a_failure() -> None:
    stage = Stage()
    command = await sent_command(stage)
    task = make_task()
    broken = task.model_copy(update={"reward": task.reward.model_copy(update={"completed": float("nan")})})
    stage.grader.tasks._kept.update(dict.fromkeys(stage.grader.tasks._kept, broken))
    answer = result(report(*["ok"] * 4), context=command.context)
    await stage.grader.executed(received(SANDBOX_RESULTS_GRADER, answer))
    (graded,) = stage.graded
    assert (graded.has_reward, graded.failure.reason) == (False, "bad_reward")


@pytest.mark.parametrize("context", [b"", b"short", b"x" * 30])
async def test_foreign_results_are_rejected(context: bytes) -> None:
    with pytest.raises(Reject):
        await Stage().grader.executed(received(SANDBOX_RESULTS_GRADER, result(b"", context=context)))


@pytest.mark.parametrize("request_id", ["", "a/b"])
async def test_requests_without_a_usable_id_are_rejected(request_id: str) -> None:
    message = request(Blob(), request_id=request_id)
    with pytest.raises(Reject):
        await Stage().grader.requested(received(GRADING_REQUESTS, message))


async def test_heartbeats_reach_the_placement() -> None:
    stage = Stage()
    beat = pb.ExecutorHeartbeat(executor_id="e")
    await stage.grader.heartbeat(Received(GRADING_REQUESTS, beat, Headers("m"), "e", 0, 0, 0.0))
    assert stage.places.beats == [beat]
