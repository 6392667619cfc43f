"""How every service starts, lives and ends.

Invariants
* A supervised task that ends before the service stops, in whatever way, stops the service; with exit code 1
  when it failed.
* After SIGTERM or SIGINT all drain callbacks run together within `drain_s`, then what is left is cancelled,
  then resources close, last registered first; a second signal skips the waiting. The process always ends.
* Nothing is left on the loop: every task is awaited.

    async def start(stack: Stack) -> list[Coroutine]:  # services/<service>/wiring.py
        producer = Producer(settings.bus, None)
        await producer.start()
        stack.on_close(producer.stop)
        consumer = Consumer(...)
        stack.on_drain(consumer.stop)
        stack.ready("bus", lambda: consumer.connected)
        return [consumer.run()]

    run("sandbox-executor", ExecutorSettings, lambda settings: partial(start, settings))  # __main__.py
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NoReturn, TypeVar

import structlog
import uvloop

from sandpiper.health import Check, Health, HealthServer
from sandpiper.settings import PREFIX, ServiceSettings, SettingsError, load, unknown_variables
from sandpiper.telemetry import setup_logging, setup_tracing

__all__ = ["PREFIX", "ServiceSettings", "Stack", "Start", "run", "serve"]

log = structlog.get_logger(__name__)

S = TypeVar("S", bound=ServiceSettings)
Drain = Callable[[float], Awaitable[None]]
Close = Callable[[], Awaitable[None]]
CLOSE_S = 5.0


class Stack:
    """What a service's wiring is given to register its parts with."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.health = Health()
        self.stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._drains: list[Drain] = []
        self._closes: list[Close] = []
        self.failed = False

    def ready(self, name: str, check: Check) -> None:
        """Let `/readyz` depend on `check`."""
        self.health.add(name, check)

    def on_drain(self, drain: Drain) -> None:
        """Call `drain(seconds_left)` when the service stops: take no more work, end what is in hand."""
        self._drains.append(drain)

    def on_close(self, close: Close) -> None:
        """Call `close()` at the very end, last registered first."""
        self._closes.append(close)

    def spawn(self, work: Coroutine[Any, Any, Any], name: str | None = None) -> asyncio.Task[Any]:
        """Run a task that lives as long as the service."""
        task = asyncio.create_task(work, name=name or getattr(work, "__qualname__", "task"))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def stop(self) -> None:
        """Begin to stop, as a signal would."""
        self.stopping.set()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if self.stopping.is_set() and (task.cancelled() or task.exception() is None):
            return
        if task.cancelled() or (error := task.exception()) is None:
            log.error("service.task_ended", task=task.get_name())
        else:
            log.error("service.task_failed", task=task.get_name(), exc_info=error)
        self.failed = True
        self.stopping.set()

    async def drain(self, seconds: float, hurry: asyncio.Event) -> None:
        """Run the drains, wait for the tasks, cancel the rest; all within `seconds`, or less in a hurry."""
        self.health.stopping = True
        deadline = time.monotonic() + seconds
        draining = asyncio.create_task(self._run_drains(deadline))
        hurried = asyncio.create_task(hurry.wait())
        await asyncio.wait(
            {draining, hurried}, timeout=seconds + CLOSE_S, return_when=asyncio.FIRST_COMPLETED
        )
        for task in (draining, hurried, *self._tasks):
            task.cancel()
        await _settle({draining, hurried, *self._tasks})

    async def _run_drains(self, deadline: float) -> None:
        left = max(0.1, deadline - time.monotonic())
        ends = await asyncio.gather(*(drain(left) for drain in self._drains), return_exceptions=True)
        for error in ends:
            if isinstance(error, BaseException):
                self.failed = True
                log.error("service.drain_failed", exc_info=error)

    async def close(self) -> None:
        """Close resources, each within CLOSE_S."""
        for close in reversed(self._closes):
            try:
                async with asyncio.timeout(CLOSE_S):
                    await close()
            except Exception:
                log.exception("service.close_failed")


Start = Callable[[Stack], Awaitable[Sequence[Coroutine[Any, Any, Any]]]]


async def serve(name: str, settings: ServiceSettings, start: Start) -> int:
    """Run a service until a signal or a failure; returns the exit code.

    `start` builds the parts and returns the coroutines to supervise.
    """
    flush = setup_tracing(name)
    stack = Stack(name)
    hurry = asyncio.Event()
    _on_signals(stack, hurry)
    server = HealthServer(stack.health)
    try:
        if settings.health_port:
            await server.start(settings.health_host, settings.health_port)
        if await _start(stack, start, settings.start_s):
            await stack.stopping.wait()
    finally:
        log.info("service.stopping", failed=stack.failed)
        await stack.drain(settings.drain_s, hurry)
        await stack.close()
        await server.stop()
        await _flush(flush)
    log.info("service.stopped", failed=stack.failed)
    return 1 if stack.failed else 0


async def _start(stack: Stack, start: Start, seconds: float) -> bool:
    """Run the wiring, interruptible by a signal; False when the service is not to go on."""
    starting = asyncio.ensure_future(start(stack))
    stopping = asyncio.create_task(stack.stopping.wait())
    await asyncio.wait({starting, stopping}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        stack.failed = not stack.stopping.is_set()
        starting.cancel()
    await _settle({starting, stopping})
    if starting.cancelled() or starting.exception() is not None:
        if not starting.cancelled():
            stack.failed = True
            log.error("service.start_failed", exc_info=starting.exception())
        return False
    for work in starting.result():
        stack.spawn(work)
    stack.health.started = True
    log.info("service.started")
    return True


def run(name: str, settings: type[S], start: Callable[[S], Start]) -> NoReturn:
    """Entry point of a service's `__main__`: settings, logging, uvloop, signals; exits the process."""
    try:
        loaded = load(settings)
    except SettingsError as error:
        print(f"{name}: bad settings: {error}", file=sys.stderr)
        sys.exit(2)
    setup_logging(name, loaded.log_level)
    for line in unknown_variables(settings):
        log.warning("service.unknown_setting", problem=line)
    sys.exit(uvloop.run(serve(name, loaded, start(loaded))))


def _on_signals(stack: Stack, hurry: asyncio.Event) -> None:
    def stop() -> None:
        if stack.stopping.is_set():
            hurry.set()
        stack.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)


async def _settle(tasks: set[asyncio.Task[Any]] | set[asyncio.Future[Any]]) -> None:
    """Wait for cancelled tasks, bounded; their errors are seen by whoever watches them."""
    if tasks:
        await asyncio.wait(tasks, timeout=CLOSE_S)


async def _flush(flush: Callable[[], None]) -> None:
    """Send the last spans, bounded. A daemon thread, because a collector that is gone must not hold us."""
    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    def work() -> None:
        flush()
        with contextlib.suppress(RuntimeError):  # the loop ended first
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=work, name="flush-traces", daemon=True).start()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_S):
            await done.wait()
