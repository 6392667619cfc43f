"""Placement: which partition of `sandbox.commands`, so which executor, gets a command.

Invariants:
* only a partition that a live, not draining executor says it owns is chosen;
* an affine partition is kept while its owner lives, so that an episode stays with its workspace;
* commands sent since an executor's last heartbeat count as its load, so that a burst does not pile up on the
  one that looked idle.
"""

from __future__ import annotations

from dataclasses import dataclass

from sandpiper.clock import Clock
from sandpiper.v1.sandbox_pb2 import ExecutorHeartbeat


@dataclass
class _Executor:
    heartbeat: ExecutorHeartbeat
    seen_at: float
    sent: int = 0
    """Commands placed on it since that heartbeat."""

    def load(self) -> float:
        """Commands per slot: running, queued, and just sent."""
        beat = self.heartbeat
        return (beat.running + beat.queued + self.sent) / max(beat.capacity, 1)


class Placement:
    """The newest heartbeat of each executor. Not durable: a new process knows the fleet after one interval."""

    def __init__(self, clock: Clock, stale_after_s: float) -> None:
        """`stale_after_s`: an executor that is silent for so long gets nothing more."""
        self._clock = clock
        self._stale_after_s = stale_after_s
        self._executors: dict[str, _Executor] = {}
        self._turns: dict[str, int] = {}

    def observe(self, heartbeat: ExecutorHeartbeat) -> None:
        """Take a heartbeat; one that is older than what is known (by `sent_at`) is ignored."""
        known = self._executors.get(heartbeat.executor_id)
        if known is not None and known.heartbeat.sent_at > heartbeat.sent_at:
            return
        self._executors[heartbeat.executor_id] = _Executor(heartbeat, self._clock.monotonic())

    def available(self) -> bool:
        """Whether there is anywhere to place a command."""
        return bool(self._live())

    def choose(self, affinity: int | None = None) -> int | None:
        """The partition for the next command, and count it as sent; None when no executor is alive.

        `affinity` is the partition that the episode used last.
        """
        live = self._live()
        if not live:
            return None
        for executor in live:
            if affinity is not None and affinity in executor.heartbeat.partitions:
                executor.sent += 1
                return affinity
        chosen = min(live, key=lambda executor: (executor.load(), executor.heartbeat.executor_id))
        chosen.sent += 1
        return self._next_partition(chosen.heartbeat)

    def _next_partition(self, heartbeat: ExecutorHeartbeat) -> int:
        """The executor's partitions in turn, so that one slow command does not hold up all the others."""
        turn = self._turns.get(heartbeat.executor_id, 0)
        self._turns[heartbeat.executor_id] = turn + 1
        return heartbeat.partitions[turn % len(heartbeat.partitions)]

    def _live(self) -> list[_Executor]:
        oldest = self._clock.monotonic() - self._stale_after_s
        self._executors = {k: v for k, v in self._executors.items() if v.seen_at >= oldest}
        return [e for e in self._executors.values() if e.heartbeat.partitions and not e.heartbeat.draining]
