"""Deliveries: one result per command, stored before it is published."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sandpiper.bus.errors import Reject, Retry
from sandpiper.bus.message import Headers, Received
from sandpiper.store.errors import StoreUnavailable
from sandpiper.store.results import ResultStore
from sandpiper.topics import SANDBOX_COMMANDS, SANDBOX_RESULTS, SANDBOX_RESULTS_GRADER
from sandpiper.v1 import sandbox_pb2 as pb
from services.sandbox_executor.handlers import CommandHandler
from tests.unit.sandbox_executor.executor_fakes import FakeClock, FakeObjects, FakeProducer


class FakeExecutor:
    def __init__(self) -> None:
        self.calls = 0
        self.gate: asyncio.Event | None = None

    async def execute(self, command: pb.SandboxCommand, queued_at: float) -> pb.SandboxResult:
        self.calls += 1
        if self.gate is not None:
            await self.gate.wait()
        return pb.SandboxResult(outcome=pb.OUTCOME_OK, stdout=b"run %d" % self.calls)


class World:
    def __init__(self) -> None:
        self.objects, self.clock, self.executor = FakeObjects(), FakeClock(), FakeExecutor()
        self.producer = FakeProducer(self.objects.order)
        self.handler = self.fresh_handler()

    def fresh_handler(self) -> CommandHandler:
        stored = ResultStore(self.objects, "sandbox-executor")  # type: ignore[arg-type]
        return CommandHandler(self.executor, stored, self.producer, self.clock, "me")  # type: ignore[arg-type]

    def delivery(self, deadline: float | None = None, **fields: Any) -> Received[pb.SandboxCommand]:
        values = {
            "command_id": "c1",
            "reply_topic": SANDBOX_RESULTS.name,
            "reply_key": "k",
            "context": b"ctx",
            **fields,
        }
        headers = Headers(message_id="m1", deadline=deadline)
        return Received(SANDBOX_COMMANDS, pb.SandboxCommand(**values), headers, "k", 5, 0, self.clock.now)

    @property
    def results(self) -> list[pb.SandboxResult]:
        return [out.message for out in self.producer.sent]  # type: ignore[misc]


async def test_the_answer() -> None:
    world = World()
    await world.handler(world.delivery(deadline=2000.0))
    out, result = world.producer.sent[0], world.results[0]
    assert (out.topic, out.key, out.causation_id, out.deadline) == (SANDBOX_RESULTS, "k", "m1", 2000.0)
    assert (result.command_id, result.context, result.executor_id, result.partition) == (
        "c1",
        b"ctx",
        "me",
        5,
    )
    assert world.objects.order == ["put results/sandbox-executor/c1", "send sandbox.results"]


async def test_the_reply_topic_is_the_commands() -> None:
    world = World()
    await world.handler(world.delivery(reply_topic=SANDBOX_RESULTS_GRADER.name))
    assert world.producer.sent[0].topic == SANDBOX_RESULTS_GRADER


@pytest.mark.parametrize(
    "fields",
    [
        {"reply_topic": ""},
        {"reply_topic": "x"},
        {"reply_topic": "inference.results"},
        {"command_id": ""},
        {"command_id": "a/b"},
    ],
)
async def test_nobody_to_answer_is_rejected(fields: dict[str, Any]) -> None:
    world = World()
    with pytest.raises(Reject):
        await world.handler(world.delivery(**fields))
    assert (world.executor.calls, world.producer.sent) == (0, [])


async def test_a_redelivery_is_answered_from_the_store() -> None:
    world = World()
    await world.handler(world.delivery())
    await world.fresh_handler()(world.delivery())
    assert world.executor.calls == 1
    assert world.results[0] == world.results[1]


async def test_two_deliveries_at_once_run_once() -> None:
    world = World()
    world.executor.gate = asyncio.Event()
    both = [asyncio.create_task(world.handler(world.delivery())) for _ in range(2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    world.executor.gate.set()
    await asyncio.gather(*both)
    assert world.executor.calls == 1
    assert [result.stdout for result in world.results] == [b"run 1", b"run 1"]


async def test_a_delivery_that_was_cut_leaves_the_other_to_try_again() -> None:
    world = World()
    world.executor.gate = asyncio.Event()
    first = asyncio.create_task(world.handler(world.delivery()))
    await asyncio.sleep(0.001)
    second = asyncio.create_task(world.handler(world.delivery()))
    await asyncio.sleep(0.001)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    with pytest.raises(Retry):
        await second
    world.executor.gate.set()
    await world.handler(world.delivery())
    assert world.executor.calls == 2
    assert len(world.results) == 1


async def test_cancelling_the_second_does_not_touch_the_first() -> None:
    world = World()
    world.executor.gate = asyncio.Event()
    first = asyncio.create_task(world.handler(world.delivery()))
    await asyncio.sleep(0.001)
    second = asyncio.create_task(world.handler(world.delivery()))
    await asyncio.sleep(0.001)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    world.executor.gate.set()
    await first
    assert len(world.results) == 1


async def test_a_store_that_is_away_costs_no_second_run() -> None:
    world = World()
    world.executor.gate = asyncio.Event()
    first = asyncio.create_task(world.handler(world.delivery()))
    await asyncio.sleep(0.001)
    world.objects.away = True
    world.executor.gate.set()
    with pytest.raises(StoreUnavailable):
        await first
    assert world.producer.sent == []
    world.objects.away = False
    await world.handler(world.delivery())
    assert world.executor.calls == 1
    assert world.objects.order == ["put results/sandbox-executor/c1", "send sandbox.results"]


async def test_past_the_deadline_nothing_is_run_or_stored() -> None:
    world = World()
    await world.handler(world.delivery(deadline=999.0))
    result = world.results[0]
    assert (result.outcome, result.failure.boundary, result.failure.reason) == (
        pb.OUTCOME_INFRA_ERROR,
        "deadline",
        "deadline",
    )
    assert (world.executor.calls, world.objects.data) == (0, {})


async def test_a_finished_command_is_answered_even_past_its_deadline() -> None:
    world = World()
    await world.handler(world.delivery(deadline=1001.0))
    world.clock.now = 5000.0
    await world.handler(world.delivery(deadline=1001.0))
    assert [result.outcome for result in world.results] == [pb.OUTCOME_OK, pb.OUTCOME_OK]
