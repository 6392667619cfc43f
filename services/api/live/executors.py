"""Executors as their heartbeats describe them. In memory: after a restart the next heartbeats refill it."""

from __future__ import annotations

from dataclasses import dataclass

from sandpiper.bus.message import Received
from sandpiper.clock import Clock
from sandpiper.v1.sandbox_pb2 import ExecutorHeartbeat
from services.api.schemas.executors import ExecutorList, ExecutorView

ALIVE_S = 15.0
FORGOTTEN_S = 600.0
MAX_EXECUTORS = 4096


@dataclass(frozen=True)
class _Seen:
    beat: ExecutorHeartbeat
    at: float
    """Monotonic seconds of this process: clocks of other machines are not compared."""


class ExecutorRegistry:
    """The newest heartbeat of each executor."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[str, _Seen] = {}

    async def on_heartbeat(self, received: Received[ExecutorHeartbeat]) -> None:
        """Bus handler."""
        age = max(0.0, self._clock.time() - received.timestamp)
        if age > FORGOTTEN_S:
            return
        self._forget()
        beat = received.message
        if beat.executor_id in self._seen or len(self._seen) < MAX_EXECUTORS:
            self._seen[beat.executor_id] = _Seen(beat, self._clock.monotonic() - age)

    def list(self) -> ExecutorList:
        """Everyone heard of lately, the living first."""
        self._forget()
        items = [self._view(seen) for seen in self._seen.values()]
        items.sort(key=lambda item: (not item.alive, item.id))
        alive = [item for item in items if item.alive]
        return ExecutorList(
            items=items,
            capacity=sum(item.capacity for item in alive),
            running=sum(item.running for item in alive),
            sandboxes=sum(item.sandboxes for item in alive),
        )

    def _forget(self) -> None:
        oldest = self._clock.monotonic() - FORGOTTEN_S
        self._seen = {name: seen for name, seen in self._seen.items() if seen.at >= oldest}

    def _view(self, seen: _Seen) -> ExecutorView:
        beat, age = seen.beat, self._clock.monotonic() - seen.at
        return ExecutorView(
            id=beat.executor_id,
            alive=age <= ALIVE_S,
            last_seen_s=round(age, 3),
            partitions=sorted(beat.partitions),
            capacity=beat.capacity,
            running=beat.running,
            queued=beat.queued,
            sandboxes=beat.sandboxes,
            cpu_share=beat.cpu_share,
            memory_used_bytes=beat.memory_used_bytes,
            memory_total_bytes=beat.memory_total_bytes,
            disk_free_bytes=beat.disk_free_bytes,
            io_pressure=beat.io_pressure,
            labels=list(beat.labels),
            images=list(beat.images),
            isolation=beat.isolation,
            backend=beat.backend,
            draining=beat.draining,
        )
