"""Heartbeats: who we are, which partitions we own, how busy the node is.

Invariants: one leaves every `interval_s` and at once when the partitions change or draining begins; a broker
that is away costs heartbeats, never the service.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import psutil
import structlog

from sandpiper.bus.errors import BusUnavailable
from sandpiper.bus.message import Outgoing
from sandpiper.bus.producer import Producer
from sandpiper.clock import Clock
from sandpiper.topics import EXECUTOR_HEARTBEATS
from sandpiper.v1.sandbox_pb2 import ExecutorHeartbeat
from services.sandbox_executor.executor import Load

log = structlog.get_logger(__name__)


class Heartbeats:
    """Sends them."""

    def __init__(
        self,
        producer: Producer,
        clock: Clock,
        identity: ExecutorHeartbeat,
        load: Load,
        sandboxes: Callable[[], int],
        disk: Path,
        interval_s: float,
    ) -> None:
        self._producer = producer
        self._clock = clock
        self._identity = identity
        self._load = load
        self._sandboxes = sandboxes
        self._disk = disk
        self._interval_s = interval_s
        self._partitions: Sequence[int] = ()
        self._draining = False
        self._changed = asyncio.Event()

    def owns(self, partitions: Iterable[int]) -> None:
        """The partitions are these now; say so at once."""
        self._partitions = sorted(partitions)
        self._changed.set()

    def drain(self) -> None:
        """No new work is wanted; say so at once."""
        self._draining = True
        self._changed.set()

    async def run(self) -> None:
        """Send until cancelled."""
        psutil.cpu_percent(None)  # the first call only starts the measurement
        away = False
        while True:
            try:
                await self.beat()
                away = False
            except BusUnavailable as error:
                if not away:
                    log.warning("heartbeat.lost", error=str(error))
                away = True
            try:
                async with asyncio.timeout(self._interval_s):
                    await self._changed.wait()
            except TimeoutError:
                continue
            self._changed.clear()

    async def beat(self) -> None:
        """Send one now. Raises BusUnavailable."""
        # Counts belong to the loop; only what asks the kernel goes to a thread.
        beat = self._counts()
        await asyncio.to_thread(self._measure, beat)
        await self._producer.send(
            Outgoing(EXECUTOR_HEARTBEATS, beat, key=beat.executor_id), timeout=max(1.0, self._interval_s)
        )

    def _counts(self) -> ExecutorHeartbeat:
        beat = ExecutorHeartbeat()
        beat.CopyFrom(self._identity)
        beat.partitions.extend(self._partitions)
        beat.capacity, beat.running, beat.queued = self._load.capacity, self._load.running, self._load.queued
        beat.sandboxes = self._sandboxes()
        beat.sent_at = self._clock.time()
        beat.draining = self._draining
        return beat

    def _measure(self, beat: ExecutorHeartbeat) -> None:
        memory = psutil.virtual_memory()
        beat.cpu_share = psutil.cpu_percent(None) / 100
        beat.memory_used_bytes, beat.memory_total_bytes = memory.total - memory.available, memory.total
        beat.disk_free_bytes = psutil.disk_usage(str(self._disk)).free
        beat.io_pressure = io_pressure()


def io_pressure(path: Path = Path("/proc/pressure/io")) -> float:
    """PSI "some avg10" of I/O, 0..100; 0 where the kernel does not say."""
    try:
        line = path.read_text().splitlines()[0]
    except (OSError, IndexError):
        return 0.0
    fields = dict(word.split("=") for word in line.split()[1:])
    return float(fields.get("avg10", 0))
