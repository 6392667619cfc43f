"""Placement: which partition of `sandbox.commands`, so which executor, gets a command.

Pure but for the injected clock. Invariants:
* only a partition that a live, not draining executor says it owns is chosen; where two say so, the later one;
* an affine partition is kept while it has such an owner, so that an episode stays with its workspace;
* commands that an executor's last heartbeat cannot know of count as its load, so that a burst does not pile
  up on the one that looked idle.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from sandpiper.clock import Clock
from sandpiper.v1.sandbox_pb2 import ExecutorHeartbeat

SETTLE_S = 1.0
"""A command may travel so long before its executor counts it."""
MAX_REMEMBERED = 10_000


@dataclass
class _Executor:
    heartbeat: ExecutorHeartbeat
    seen_at: float
    sent: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=MAX_REMEMBERED))
    """(monotonic seconds, partition) of commands that the heartbeat cannot know of."""
    turn: int = 0

    def load(self) -> float:
        """Commands per slot: running, queued, and just sent. Above 1 they wait."""
        beat = self.heartbeat
        return (beat.running + beat.queued + len(self.sent)) / beat.capacity

    def next_partition(self, partitions: list[int]) -> int:
        """The partition with the fewest commands under way, in turn among equals."""
        under_way = Counter(partition for _, partition in self.sent)
        self.turn += 1
        start = self.turn % len(partitions)
        return min(partitions[start:] + partitions[:start], key=under_way.__getitem__)


class Placement:
    """The newest heartbeat of each executor. Not durable: a new process knows the fleet in one interval."""

    def __init__(self, clock: Clock, stale_after_s: float = 5.0) -> None:
        """`stale_after_s`: an executor that is silent for so long gets nothing more."""
        self._clock = clock
        self._stale_after_s = stale_after_s
        self._executors: dict[str, _Executor] = {}

    def observe(self, heartbeat: ExecutorHeartbeat) -> None:
        """Take a heartbeat; one that is older than what is known (by `sent_at`) is ignored."""
        now = self._clock.monotonic()
        known = self._executors.get(heartbeat.executor_id)
        if known is None:
            self._executors[heartbeat.executor_id] = _Executor(heartbeat, now)
            return
        if heartbeat.sent_at < known.heartbeat.sent_at:
            return
        known.heartbeat, known.seen_at = heartbeat, now
        while known.sent and known.sent[0][0] <= now - SETTLE_S:
            known.sent.popleft()

    def available(self) -> bool:
        """Whether there is anywhere to place a command."""
        return bool(self._owners())

    def choose(self, affinity: int | None = None) -> int | None:
        """The partition for the next command, and count it as sent; None when no executor is alive.

        `affinity` is the partition that the episode used last.
        """
        owners = self._owners()
        if affinity is not None and affinity in owners:
            return self._sent(owners[affinity], affinity)
        if not owners:
            return None
        best = min(
            owners.values(),
            key=lambda item: (item.load(), item.heartbeat.sandboxes, item.heartbeat.executor_id),
        )
        mine = sorted(partition for partition, owner in owners.items() if owner is best)
        return self._sent(best, best.next_partition(mine))

    def live(self) -> list[ExecutorHeartbeat]:
        """Heartbeats of the executors that may be chosen now."""
        return [executor.heartbeat for executor in self._live()]

    def _sent(self, executor: _Executor, partition: int) -> int:
        executor.sent.append((self._clock.monotonic(), partition))
        return partition

    def _owners(self) -> dict[int, _Executor]:
        """Partition -> live executor; of two claims the later holds (a rebalance is under way)."""
        owners: dict[int, _Executor] = {}
        for item in sorted(
            self._live(), key=lambda item: (item.heartbeat.sent_at, item.heartbeat.executor_id)
        ):
            owners.update(dict.fromkeys(item.heartbeat.partitions, item))
        return owners

    def _live(self) -> list[_Executor]:
        """Fresh executors that take work; those long silent are forgotten."""
        oldest = self._clock.monotonic() - self._stale_after_s
        self._executors = {k: v for k, v in self._executors.items() if v.seen_at >= oldest}
        return [e for e in self._executors.values() if e.heartbeat.capacity > 0 and not e.heartbeat.draining]
