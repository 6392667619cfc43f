"""Keeps one command running: start, wait until it is ready, watch, restart with backoff.

Invariants:
* at most one process of the command runs at a time, and none after `stop()` returned;
* a restart waits `Backoff.delay`, which doubles up to a bound and is forgotten after a healthy spell;
* every wait has a deadline: readiness by `ready_within_s`, stopping by the command's grace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import structlog

from sandpiper.clock import Clock
from sandpiper.embedded.errors import StackError
from sandpiper.embedded.process import Child, Command, tail

log = structlog.get_logger()

State = Literal["waiting", "starting", "ready", "unhealthy", "restarting", "stopped"]
Probe = Callable[[], Awaitable[bool]]
Hook = Callable[[], Awaitable[None]]
PROBE_EVERY_S = 0.1
WATCH_EVERY_S = 2.0
PROBE_TIMEOUT_S = 3.0
EARLY_EXITS_MAX = 3


class Runs(Protocol):
    """What the supervisor needs of a process; `Child` is the real one."""

    @property
    def command(self) -> Command: ...
    @property
    def started_ticks(self) -> int | None: ...
    @property
    def pid(self) -> int: ...
    @property
    def running(self) -> bool: ...
    async def wait(self) -> int: ...
    async def stop(self, grace_s: float | None = None) -> None: ...
    async def sweep(self) -> None: ...


@dataclass
class Backoff:
    """Delays between restarts, in seconds."""

    first_s: float = 0.5
    max_s: float = 30.0
    healthy_s: float = 60.0
    """A process that ran this long starts the sequence anew."""
    _next: float = 0.0

    def delay(self, ran_s: float) -> float:
        """How long to wait before the next start of a process that ran for `ran_s`."""
        if ran_s >= self.healthy_s or not self._next:
            self._next = self.first_s
        delay, self._next = self._next, min(self._next * 2, self.max_s)
        return delay


@dataclass(frozen=True)
class Unit:
    """A command with what makes it ready."""

    command: Command
    probe: Probe
    """True once it serves. Must answer within a few seconds; exceptions count as False."""
    ready_within_s: float = 60.0
    on_ready: Hook | None = None
    """Runs each time it becomes ready, before it counts as ready (topics of a fresh broker)."""


class Supervised:
    """One unit under supervision."""

    def __init__(
        self,
        unit: Unit,
        token: str,
        clock: Clock,
        changed: Callable[[], None],
        spawn: Callable[[Command, str], Runs] = Child.spawn,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        backoff: Backoff | None = None,
    ) -> None:
        self.unit = unit
        self.child: Runs | None = None
        self.restarts = 0
        self.state: State = "waiting"
        self._token, self._clock, self._changed = token, clock, changed
        self._spawn, self._sleep = spawn, sleep
        self._backoff = backoff or Backoff()
        self._first_ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None
        self._late = False

    @property
    def name(self) -> str:
        return self.unit.command.name

    async def start(self) -> None:
        """Start it and return once it is ready for the first time; StackError if it does not get there."""
        self._task = asyncio.create_task(self._run(), name=f"supervise {self.name}")
        await asyncio.wait([self._task, self._first_ready], return_when=asyncio.FIRST_COMPLETED)
        if self._first_ready.done():
            return
        await self._task
        raise StackError(f"{self.name} did not start")

    async def stop(self, grace_s: float | None = None) -> None:
        """End supervision and the process."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self.child is not None:
            await self.child.stop(grace_s)
        self._set("stopped")

    async def _run(self) -> None:
        while True:
            began = self._clock.monotonic()
            self._set("starting" if not self.restarts else "restarting")
            try:
                child = self.child = self._spawn(self.unit.command, self._token)
            except OSError as error:
                await self._exited(error.errno or -1, 0.0)
                continue
            self._changed()
            watcher = asyncio.create_task(self._watch(child), name=f"watch {self.name}")
            try:
                status = await child.wait()
            finally:
                watcher.cancel()
                await asyncio.gather(watcher, return_exceptions=True)
            await child.sweep()
            await self._exited(status, self._clock.monotonic() - began)

    async def _exited(self, status: int, ran_s: float) -> None:
        self.restarts += 1
        if not self._first_ready.done():
            if self._late:
                raise StackError(
                    f"{self.name} was not ready in {self.unit.ready_within_s} s{self._last_words()}"
                )
            if self.restarts >= EARLY_EXITS_MAX:
                raise StackError(
                    f"{self.name} ended {self.restarts} times (status {status}){self._last_words()}"
                )
        delay = self._backoff.delay(ran_s)
        self._set("restarting")
        log.warning(
            "process ended", process=self.name, status=status, ran_s=round(ran_s, 1), restart_in_s=delay
        )
        await self._sleep(delay)

    def _last_words(self) -> str:
        return f"; last lines of {self.unit.command.log}:\n{tail(self.unit.command.log)}"

    async def _watch(self, child: Runs) -> None:
        """Ready or not; a process that never gets ready in time is ended, so that it is started anew."""
        ends = self._clock.monotonic() + self.unit.ready_within_s
        while not await self._healthy():
            if self._clock.monotonic() > ends:
                log.error("process not ready in time", process=self.name, seconds=self.unit.ready_within_s)
                self._late = True
                await child.stop()
                return
            await self._sleep(PROBE_EVERY_S)
        if self.unit.on_ready is not None:
            try:
                await self.unit.on_ready()
            except Exception as error:  # whatever the hook met, the remedy is a fresh process
                log.error("process ready but its set-up failed", process=self.name, error=repr(error))
                await child.stop()
                return
        self._set("ready")
        if not self._first_ready.done():
            self._first_ready.set_result(None)
        while True:
            await self._sleep(WATCH_EVERY_S)
            self._set("ready" if await self._healthy() else "unhealthy")

    async def _healthy(self) -> bool:
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                return await self.unit.probe()
        except Exception:  # a probe fails in as many ways as there are clients; all mean "not now"
            return False

    def _set(self, state: State) -> None:
        if state != self.state:
            self.state = state
            self._changed()
