"""Consumer for long work: many handlers at once, commits only what is contiguously done.

Invariants
* A message is committed only when it and all before it in its partition were handled or dead-lettered.
* At most `concurrency` messages are in hand; a full consumer pauses its partitions and keeps polling, so
  that membership and heartbeats never wait for a handler.
* With `keep_order`, messages of one key are handled one after another, in the order of the log.
* Handlers outlive a lost session: their messages are recognised when they are delivered again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog
from aiokafka import ConsumerRecord
from aiokafka.structs import TopicPartition

from sandpiper.bus.backoff import Backoff
from sandpiper.bus.base import POLL_S, ConsumerBase
from sandpiper.bus.claims import ClaimStore
from sandpiper.bus.dlq import DlqLimit
from sandpiper.bus.errors import Reject, Retry
from sandpiper.bus.handling import Handler, Handling
from sandpiper.bus.message import Received
from sandpiper.bus.offsets import Entry, Ledger
from sandpiper.bus.producer import Producer
from sandpiper.bus.records import Stopping, message_id
from sandpiper.bus.session import PartitionsCallback, Session
from sandpiper.bus.settings import BusSettings
from sandpiper.clock import Clock
from sandpiper.telemetry import metrics
from sandpiper.topics import Topic

__all__ = ["Consumer", "DlqLimit", "Handler", "Received", "Reject", "Retry", "TopicPartition"]

log = structlog.get_logger(__name__)

COMMIT_TIMEOUT_S = 5.0
REVOKE_COMMIT_S = 2.0
LAST_COMMIT_S = 1.0
CANCEL_S = 0.5


class Consumer(ConsumerBase):
    """Calls one handler per message.

    A handler that returns is done. `Reject` dead-letters at once. A transient error (Retry, a store or
    database that is away) is tried again until `retry_for_s` has passed, any other `max_tries` times; then
    the message is dead-lettered.
    """

    def __init__(
        self,
        settings: BusSettings,
        group: str | None,
        handlers: Mapping[Topic, Handler],
        producer: Producer,
        claims: ClaimStore | None,
        *,
        concurrency: int = 16,
        max_tries: int = 5,
        retry_for_s: float = 900.0,
        backoff: Backoff | None = None,
        dlq_limit: DlqLimit | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        client_id: str | None = None,
        keep_order: bool = False,
        broadcast: bool = False,
        from_beginning: bool = False,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(
            settings,
            group,
            handlers,
            producer,
            claims,
            dlq_limit=dlq_limit,
            on_assigned=on_assigned,
            on_revoked=on_revoked,
            client_id=client_id,
            broadcast=broadcast,
            from_beginning=from_beginning,
            clock=clock,
        )
        self._handling = Handling(
            {topic.name: handler for topic, handler in handlers.items()},
            self._records,
            self._stopping,
            self._clock,
            max_tries,
            retry_for_s,
            backoff or Backoff(0.2, 15.0),
        )
        self._concurrency = concurrency
        self._keep_order = keep_order
        self._ledger = Ledger()
        self._running: set[asyncio.Task[None]] = set()
        self._tails: dict[tuple[str, bytes], asyncio.Task[None]] = {}
        self._progress = asyncio.Event()
        self._fatal: BaseException | None = None

    @property
    def in_hand(self) -> int:
        """Messages delivered here and not yet handled."""
        return len(self._running)

    # Polling.

    async def _work(self, session: Session) -> None:
        committer = asyncio.create_task(self._commit_often(session), name=f"{self.name}-commits")
        try:
            while not self._stopping.is_set():
                self._raise_fatal()
                free = self._concurrency - len(self._running)
                metrics.CONSUMER_PAUSED.labels(self.name).set(free <= 0)
                if free <= 0:
                    await asyncio.wait(self._running, timeout=POLL_S, return_when=asyncio.FIRST_COMPLETED)
                for record in await self._unless_stopped(session.poll(free, POLL_S), session):
                    self._take(session, record)
        finally:
            committer.cancel()
            await asyncio.gather(committer, return_exceptions=True)

    def _take(self, session: Session, record: ConsumerRecord) -> None:
        partition = TopicPartition(record.topic, record.partition)
        ident = message_id(record)
        if self._group is None and not self._anchors.admit(session, partition, record.offset, ident):
            return
        entry = self._ledger.begin(partition, record.offset, ident)
        if entry is None:
            return
        key = (record.topic, record.key or b"")
        before = self._tails.get(key) if self._keep_order else None
        task = asyncio.create_task(self._handle(record, entry, before), name=f"{self.name}-{ident}")
        self._running.add(task)
        task.add_done_callback(self._ended)
        if self._keep_order:
            self._tails[key] = task
            task.add_done_callback(lambda ended: self._forget_tail(key, ended))
        metrics.HANDLERS_RUNNING.labels(self.name).set(len(self._running))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        metrics.HANDLERS_RUNNING.labels(self.name).set(len(self._running))
        if not task.cancelled() and (error := task.exception()) is not None and self._fatal is None:
            self._fatal = error
        self._progress.set()

    def _forget_tail(self, key: tuple[str, bytes], task: asyncio.Task[None]) -> None:
        if self._tails.get(key) is task:
            del self._tails[key]

    def _raise_fatal(self) -> None:
        if self._fatal is not None:
            raise self._fatal

    async def _handle(self, record: ConsumerRecord, entry: Entry, before: asyncio.Task[None] | None) -> None:
        """One message to its end. Sets `entry.done` unless the consumer stops first."""
        try:
            if before is not None:
                await asyncio.wait({before})
                if self._stopping.is_set():
                    raise Stopping
            await self._handling.finish(record)
        except (Stopping, asyncio.CancelledError):
            metrics.MESSAGES_CONSUMED.labels(record.topic, "abandoned").inc()
            return
        entry.done = True

    # Commits.

    async def _commit_often(self, session: Session) -> None:
        while True:
            await self._progress.wait()
            self._progress.clear()
            if not await self._commit(session, COMMIT_TIMEOUT_S):
                self._progress.set()
            await asyncio.sleep(self._settings.commit_interval_s)

    async def _commit(self, session: Session, timeout: float) -> bool:
        points = self._ledger.commit_points()
        if not await session.commit(points, timeout):
            return False
        self._ledger.commit(points)
        return True

    async def _revoking(self, session: Session) -> None:
        await self._commit(session, REVOKE_COMMIT_S)
        self._ledger.revoke()

    def _assigning(self, partitions: frozenset[TopicPartition]) -> None:
        self._ledger.assign(partitions)

    async def _drain(self, session: Session | None, timeout: float) -> None:
        if self._running and timeout > 0:
            await asyncio.wait(self._running, timeout=timeout)
        left = set(self._running)
        for task in left:
            task.cancel()
        if left:
            log.info("bus.handlers_cancelled", consumer=self.name, count=len(left))
            await asyncio.wait(left, timeout=CANCEL_S)
        if session is not None:
            await self._commit(session, LAST_COMMIT_S)
