"""Heartbeats: on time, at once on change, through outages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from sandpiper.bus.errors import BusUnavailable
from sandpiper.bus.message import Outgoing
from sandpiper.v1.sandbox_pb2 import ExecutorHeartbeat
from services.sandbox_executor.executor import Load
from services.sandbox_executor.heartbeats import Heartbeats, io_pressure
from tests.unit.sandbox_executor.executor_fakes import FakeClock, FakeProducer


class MoodyProducer(FakeProducer):
    away = False

    async def send(self, out: Outgoing, *, timeout: float | None = None) -> None:
        if self.away:
            raise BusUnavailable("away")
        await super().send(out)


def make(tmp_path: Path, interval_s: float) -> tuple[Heartbeats, MoodyProducer]:
    producer = MoodyProducer()
    identity = ExecutorHeartbeat(executor_id="me", backend="fake", labels=["io"])
    load = Load(capacity=4, running=2, queued=1)
    beats = Heartbeats(producer, FakeClock(), identity, load, lambda: 3, tmp_path, interval_s)  # type: ignore[arg-type]
    return beats, producer


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def test_what_a_beat_says(tmp_path: Path) -> None:
    beats, producer = make(tmp_path, 60)
    beats.owns([9, 3])
    await beats.beat()
    out = producer.sent[0]
    beat = out.message
    assert isinstance(beat, ExecutorHeartbeat)
    assert (out.key, beat.executor_id, list(beat.partitions)) == ("me", "me", [3, 9])
    assert (beat.capacity, beat.running, beat.queued, beat.sandboxes) == (4, 2, 1, 3)
    assert (beat.sent_at, beat.draining, list(beat.labels)) == (1000.0, False, ["io"])
    assert 0 < beat.memory_used_bytes < beat.memory_total_bytes


async def test_a_change_is_told_at_once(tmp_path: Path) -> None:
    beats, producer = make(tmp_path, 60)
    running = asyncio.create_task(beats.run())
    await until(lambda: len(producer.sent) == 1)
    beats.owns([1])
    await until(lambda: len(producer.sent) == 2)
    beats.drain()
    await until(lambda: len(producer.sent) == 3)
    assert [(list(out.message.partitions), out.message.draining) for out in producer.sent] == [  # type: ignore[attr-defined]
        ([], False),
        ([1], False),
        ([1], True),
    ]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_broker_that_is_away_costs_beats_not_the_service(tmp_path: Path) -> None:
    beats, producer = make(tmp_path, 0.01)
    producer.away = True
    running = asyncio.create_task(beats.run())
    await asyncio.sleep(0.1)
    assert not running.done()
    producer.away = False
    await until(lambda: len(producer.sent) >= 2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_io_pressure(tmp_path: Path) -> None:
    path = tmp_path / "io"
    assert io_pressure(path) == 0
    path.write_text(
        "some avg10=55.62 avg60=15.16 avg300=3.71 total=30862351\nfull avg10=1 avg60=1 avg300=1 total=1\n"
    )
    assert io_pressure(path) == 55.62
