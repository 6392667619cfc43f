"""One life of an aiokafka consumer: from joining to the loss of its broker, its stop, or an error.

Invariants
* Every call here ends in bounded time, also while the broker is gone; `close` leaves no task behind.
* While nothing may be taken (`poll` with 0) membership is kept and nothing is lost.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError
from aiokafka.structs import TopicPartition

from sandpiper.bus.admin import ensure_topics
from sandpiper.bus.assignor import StickyAssignor
from sandpiper.bus.client import BrokerWatch, client_options, close_within
from sandpiper.bus.errors import BusUnavailable
from sandpiper.bus.settings import BusSettings
from sandpiper.topics import Topic

log = structlog.get_logger(__name__)

PartitionsCallback = Callable[[frozenset[TopicPartition]], Awaitable[None] | None]
# A poll of a partition that nobody has returns nothing, but tells aiokafka that we are alive.
_NOWHERE = TopicPartition("", 0)
_MAX_POLL_INTERVAL_MS = 600_000
IDLE_AFTER_S = 3.0
# Small, so that one long partition does not keep the others waiting; above any message (claim checks).
_PARTITION_FETCH_BYTES = 256 * 1024


class Session:
    """A consumer that is joined (or, without a group, assigned to everything)."""

    def __init__(
        self,
        settings: BusSettings,
        client_id: str,
        group: str | None,
        topics: Sequence[Topic],
        on_assigned: PartitionsCallback,
        on_revoked: PartitionsCallback,
        assignor: StickyAssignor,
        reset: str = "earliest",
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._group = group
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._watch = BrokerWatch(settings)
        self._kafka = AIOKafkaConsumer(
            **client_options(settings, client_id),
            group_id=group,
            partition_assignment_strategy=(assignor,),
            enable_auto_commit=False,
            auto_offset_reset=reset,
            fetch_max_wait_ms=settings.fetch_wait_ms,
            session_timeout_ms=settings.session_ms,
            heartbeat_interval_ms=settings.heartbeat_ms,
            max_poll_interval_ms=_MAX_POLL_INTERVAL_MS,
            max_partition_fetch_bytes=_PARTITION_FETCH_BYTES,
        )
        self._paused = False
        self._busy_at = time.monotonic()

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """What is assigned now."""
        return frozenset(self._kafka.assignment())

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """What is held back because nothing more may be taken."""
        return frozenset(self._kafka.paused())

    @property
    def lost(self) -> asyncio.Event:
        """Set when a broker without durable state closed its connection."""
        return self._watch.lost

    async def open(self) -> None:
        """Make sure the topics exist, then join. Raises KafkaError, OSError, TimeoutError, BusUnavailable."""
        await self._watch.start()
        await ensure_topics(self._settings, self._topics, timeout=self._settings.request_timeout_ms / 1000)
        names = [topic.name for topic in self._topics]
        self._kafka.subscribe(names, listener=_Listener(self._on_assigned, self._on_revoked))
        await self._kafka.start()

    async def poll(self, limit: int, timeout: float) -> list[ConsumerRecord]:
        """At most `limit` records, waiting up to `timeout` seconds; during a rebalance longer.

        Raises BusUnavailable once the broker is lost, KafkaError when aiokafka gave up.
        """
        if self.lost.is_set():
            raise BusUnavailable("broker closed its connection")
        self._pause(limit <= 0)
        where = [_NOWHERE] if limit <= 0 else []
        batches = await self._kafka.getmany(
            *where, timeout_ms=0 if limit <= 0 else int(timeout * 1000), max_records=max(limit, 1)
        )
        self._pace(bool(batches))
        return [record for records in batches.values() for record in records]

    async def commit(self, points: Mapping[TopicPartition, int], timeout: float) -> bool:
        """Commit offsets; False when the broker did not take them (rebalanced, gone, too slow)."""
        if not points or self._group is None or self.lost.is_set():
            return not points
        try:
            async with asyncio.timeout(timeout):
                await self._kafka.commit(dict(points))
        except (KafkaError, CommitFailedError, IllegalStateError, TimeoutError) as error:
            log.debug("bus.commit_refused", error=repr(error))
            return False
        return True

    async def position(self, partition: TopicPartition) -> int:
        """Offset of the next record."""
        return int(await self._kafka.position(partition))

    async def ends(self) -> dict[TopicPartition, int]:
        """One above the last offset of each partition."""
        return dict(await self._kafka.end_offsets(list(self.partitions)))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read on from `offset`."""
        self._kafka.seek(partition, offset)

    async def close(self, timeout: float) -> None:
        """Leave the group and disconnect, by force after `timeout`."""
        try:
            await close_within(self._kafka, 0 if self.lost.is_set() else timeout)
        finally:
            await self._watch.stop()

    def _pace(self, busy: bool) -> None:
        """Let an idle consumer of a broker that is polled ask less often, and one that has no share in the
        work of a group (it follows heartbeats, policies, events for people) always."""
        now = time.monotonic()
        if busy:
            self._busy_at = now
        idle = self._group is None or now - self._busy_at > IDLE_AFTER_S
        # Read for each request; aiokafka 0.14 has no public way to change it.
        self._kafka._fetcher._fetch_max_wait_ms = (
            self._settings.idle_wait_ms if idle else self._settings.fetch_wait_ms
        )

    def _pause(self, pause: bool) -> None:
        partitions = self._kafka.assignment()
        if pause:
            self._kafka.pause(*(partitions - self._kafka.paused()))
        elif self._paused:
            self._kafka.resume(*(partitions & self._kafka.paused()))
        self._paused = pause


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, on_assigned: PartitionsCallback, on_revoked: PartitionsCallback) -> None:
        self._assigned = on_assigned
        self._revoked = on_revoked

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        await call_back(self._assigned, frozenset(assigned))

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        await call_back(self._revoked, frozenset(revoked))


async def call_back(callback: PartitionsCallback, partitions: frozenset[TopicPartition]) -> None:
    result = callback(partitions)
    if inspect.isawaitable(result):
        await result
