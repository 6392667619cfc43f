"""Restart, backoff and readiness of one supervised process; time is the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sandpiper.embedded.errors import StackError
from sandpiper.embedded.process import Command
from sandpiper.embedded.supervisor import Backoff, Supervised, Unit


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class FakeProcess:
    """A process that ends when told."""

    started_ticks = 1

    def __init__(self, command: Command, pid: int) -> None:
        self.command, self.pid = command, pid
        self.events: list[str] = []
        self._status: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def running(self) -> bool:
        return not self._status.done()

    def end(self, status: int) -> None:
        if self.running:
            self._status.set_result(status)

    async def wait(self) -> int:
        return await asyncio.shield(self._status)

    async def stop(self, grace_s: float | None = None) -> None:
        self.events.append("stop")
        self.end(-15)

    async def sweep(self) -> None:
        self.events.append("sweep")


class Bench:
    """A supervised fake and everything to poke it with."""

    def __init__(
        self, tmp_path: Path, healthy: bool = True, on_ready: Callable[[], Awaitable[None]] | None = None
    ):
        self.time = FakeTime()
        self.healthy = healthy
        self.processes: list[FakeProcess] = []
        self.changes = 0
        self.spawn_error: OSError | None = None
        self.command = Command("fake", ["fake"], {}, tmp_path / "fake.log")
        unit = Unit(self.command, self._probe, ready_within_s=10.0, on_ready=on_ready)
        self.supervised = Supervised(unit, "token", self.time, self._changed, self._spawn, self.time.sleep)

    async def _probe(self) -> bool:
        return self.healthy

    def _changed(self) -> None:
        self.changes += 1

    def _spawn(self, command: Command, token: str) -> FakeProcess:
        if self.spawn_error is not None:
            raise self.spawn_error
        self.processes.append(FakeProcess(command, 100 + len(self.processes)))
        return self.processes[-1]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():
                await asyncio.sleep(0)


async def test_start_returns_once_ready_and_stop_ends_the_process(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.supervised.start()
    assert (bench.supervised.state, bench.supervised.restarts) == ("ready", 0)
    await bench.supervised.stop()
    assert bench.supervised.state == "stopped"
    assert bench.processes[0].events == ["stop"]


async def test_what_dies_is_started_again_and_its_remains_are_swept_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.supervised.start()
    bench.processes[0].end(-9)
    await bench.until(lambda: len(bench.processes) == 2 and bench.supervised.state == "ready")
    assert bench.processes[0].events == ["sweep"]
    assert bench.supervised.restarts == 1
    assert bench.supervised.child is bench.processes[1]
    await bench.supervised.stop()


async def test_nothing_is_started_after_stop(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.supervised.start()
    bench.processes[0].end(1)
    await bench.supervised.stop()
    started = len(bench.processes)
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(bench.processes) == started
    assert not bench.processes[-1].running


async def test_an_unhealthy_process_shows_and_recovers(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.supervised.start()
    bench.healthy = False
    await bench.until(lambda: bench.supervised.state == "unhealthy")
    bench.healthy = True
    await bench.until(lambda: bench.supervised.state == "ready")
    assert len(bench.processes) == 1
    await bench.supervised.stop()


async def test_a_process_that_dies_at_once_fails_the_start_with_its_last_words(tmp_path: Path) -> None:
    bench = Bench(tmp_path, healthy=False)
    bench.command.log.write_text("first\nwhy it died\n")
    starting = asyncio.create_task(bench.supervised.start())
    for number in range(3):
        await bench.until(lambda number=number: len(bench.processes) > number)  # type: ignore[misc]
        bench.processes[number].end(3)
    with pytest.raises(StackError, match=r"(?s)status 3.*why it died"):
        await starting


async def test_a_process_that_never_gets_ready_fails_the_start_at_its_deadline(tmp_path: Path) -> None:
    bench = Bench(tmp_path, healthy=False)
    with pytest.raises(StackError, match="not ready in 10"):
        await bench.supervised.start()
    assert 10.0 <= bench.time.now < 11.0
    assert len(bench.processes) == 1


async def test_a_restarted_process_that_never_gets_ready_is_started_anew(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.supervised.start()
    bench.healthy = False
    bench.processes[0].end(1)
    await bench.until(lambda: len(bench.processes) == 4)
    assert [process.running for process in bench.processes] == [False, False, False, True]
    await bench.supervised.stop()


async def test_the_hook_runs_at_every_ready_before_it_counts(tmp_path: Path) -> None:
    states: list[str] = []

    async def hook() -> None:
        states.append(bench.supervised.state)

    bench = Bench(tmp_path, on_ready=hook)
    await bench.supervised.start()
    assert states == ["starting"]
    bench.processes[0].end(1)
    await bench.until(lambda: len(bench.processes) == 2 and bench.supervised.state == "ready")
    assert states == ["starting", "restarting"]
    await bench.supervised.stop()


async def test_a_failing_hook_means_a_fresh_process(tmp_path: Path) -> None:
    calls = 0

    async def hook() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("no topics")

    bench = Bench(tmp_path, on_ready=hook)
    await bench.supervised.start()
    assert (calls, len(bench.processes)) == (2, 2)
    assert bench.processes[0].events[0] == "stop"
    await bench.supervised.stop()


async def test_a_spawn_that_fails_is_tried_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.supervised.start()
    bench.spawn_error = BlockingIOError(11, "no more processes")
    bench.processes[0].end(1)
    await bench.until(lambda: bench.supervised.restarts >= 4)
    bench.spawn_error = None
    await bench.until(lambda: bench.supervised.state == "ready")
    await bench.supervised.stop()


async def test_delays_grow_while_it_keeps_dying_and_start_anew_after_a_healthy_spell(tmp_path: Path) -> None:
    backoff = Backoff(first_s=0.5, max_s=4.0, healthy_s=60.0)
    assert [backoff.delay(1.0) for _ in range(6)] == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert backoff.delay(61.0) == 0.5
    assert backoff.delay(1.0) == 1.0
