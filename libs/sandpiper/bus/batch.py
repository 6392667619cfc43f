"""Consumer for short work that likes company: one handler call per poll, commit after it returned.

Invariants
* Messages of a partition are handled in the order of the log; nothing is committed before it was handled or
  dead-lettered.
* An outage of what the handler needs (is_transient) never dead-letters: the batch is tried until it works.
* Any other failure is narrowed to the message that causes it; only that one is dead-lettered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import structlog
from aiokafka import ConsumerRecord
from aiokafka.structs import TopicPartition
from opentelemetry.trace import SpanKind

from sandpiper.bus.backoff import Backoff, wait_or_stop
from sandpiper.bus.base import POLL_S, ConsumerBase
from sandpiper.bus.claims import ClaimStore
from sandpiper.bus.dlq import DlqLimit
from sandpiper.bus.errors import Reject, Undeliverable, is_transient
from sandpiper.bus.handling import not_cancelled
from sandpiper.bus.message import Received
from sandpiper.bus.producer import Producer
from sandpiper.bus.records import Stopping, message_id
from sandpiper.bus.session import PartitionsCallback, Session
from sandpiper.bus.settings import BusSettings
from sandpiper.clock import Clock
from sandpiper.telemetry import metrics, tracing
from sandpiper.topics import Topic

log = structlog.get_logger(__name__)

BatchHandler = Callable[[list[Received[Any]]], Awaitable[None]]
COMMIT_TIMEOUT_S = 5.0
REVOKE_GRACE_S = 3.0

Pair = tuple[ConsumerRecord, Received[Any]]


class BatchConsumer(ConsumerBase):
    """Calls the handler with up to `max_batch` messages of any of its topics."""

    def __init__(
        self,
        settings: BusSettings,
        group: str | None,
        topics: Iterable[Topic],
        handler: BatchHandler,
        producer: Producer,
        claims: ClaimStore | None,
        *,
        max_batch: int = 100,
        max_tries: int = 5,
        backoff: Backoff | None = None,
        dlq_limit: DlqLimit | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        client_id: str | None = None,
        broadcast: bool = False,
        from_beginning: bool = False,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(
            settings,
            group,
            topics,
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
        self._handler = handler
        self._max_batch = max_batch
        self._max_tries = max_tries
        self._backoff = backoff or Backoff(0.2, 10.0)
        self._points: dict[TopicPartition, int] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    async def _work(self, session: Session) -> None:
        while not self._stopping.is_set():
            records = await self._unless_stopped(session.poll(self._max_batch, POLL_S), session)
            records = [record for record in records if self._admitted(session, record)]
            if records:
                await self._finish_batch(session, records)

    def _admitted(self, session: Session, record: ConsumerRecord) -> bool:
        if self._group is not None:
            return True
        partition = TopicPartition(record.topic, record.partition)
        return self._anchors.admit(session, partition, record.offset, message_id(record))

    async def _finish_batch(self, session: Session, records: list[ConsumerRecord]) -> None:
        self._idle.clear()
        try:
            await self._until_deadline(self._process(records))
            await self._commit(session, COMMIT_TIMEOUT_S)
        finally:
            self._idle.set()

    async def _process(self, records: list[ConsumerRecord]) -> None:
        pairs = [pair for record in records if (pair := await self._decoded(record)) is not None]
        if pairs:
            began, now = time.monotonic(), self._clock.time()
            for record, received in pairs:
                metrics.MESSAGE_AGE_SECONDS.labels(record.topic).observe(max(0.0, now - received.timestamp))
            if not await self._try_together(pairs):
                for pair in pairs:
                    await self._try_alone(*pair)
                    self._done(pair[0])
            metrics.HANDLER_SECONDS.labels(pairs[0][0].topic).observe(time.monotonic() - began)
        for record in records:
            self._done(record)

    def _done(self, record: ConsumerRecord) -> None:
        """Note that this record and all before it in its partition have come to their end."""
        self._points[TopicPartition(record.topic, record.partition)] = record.offset + 1

    async def _decoded(self, record: ConsumerRecord) -> Pair | None:
        """The record with its message; None when it went to the DLQ instead."""
        tries = 0
        while True:
            tries += 1
            try:
                return record, await self._records.decode(record)
            except Undeliverable as refusal:
                await self._records.dead_letter(record, refusal.reason, refusal.detail, tries)
                return None
            except Exception as error:
                if not is_transient(error):
                    raise
                await self._pause(tries, record.topic, error)

    async def _try_together(self, pairs: list[Pair]) -> bool:
        """True when the whole batch was handled; False when some message of it fails."""
        tries = 0
        while True:
            tries += 1
            try:
                await self._call_handler([received for _, received in pairs])
            except Exception as error:
                if not is_transient(error):
                    log.info("bus.batch_failed", size=len(pairs), error=repr(error))
                    return False
                await self._pause(tries, pairs[0][0].topic, error)
            else:
                for record, _ in pairs:
                    self._records.handled(record)
                return True

    async def _try_alone(self, record: ConsumerRecord, received: Received[Any]) -> None:
        tries = own_tries = 0
        while True:
            tries += 1
            try:
                await self._call_handler([received])
            except Reject as refusal:
                return await self._records.dead_letter(record, refusal.reason, refusal.detail, tries)
            except Exception as error:
                own_tries += not is_transient(error)
                if own_tries >= self._max_tries:
                    log.warning("bus.handler_gave_up", topic=record.topic, exc_info=True)
                    return await self._records.dead_letter(record, "handler_error", repr(error), tries)
                await self._pause(tries, record.topic, error)
            else:
                return self._records.handled(record)

    async def _pause(self, tries: int, topic: str, error: Exception) -> None:
        """Wait before the next try, staying a member of the group; Stopping when the consumer stops."""
        metrics.HANDLER_RETRIES.labels(topic).inc()
        level = log.warning if tries == 1 else log.debug
        level("bus.batch_retry", topic=topic, tries=tries, error=repr(error))
        if await wait_or_stop(self._stopping, self._backoff.pause(tries)):
            raise Stopping from None

    async def _call_handler(self, batch: list[Received[Any]]) -> None:
        names = {received.topic.name for received in batch}
        name = f"{names.pop()} process" if len(names) == 1 else "batch process"
        single = batch[0].headers.traceparent if len(batch) == 1 else None
        links = [received.headers.traceparent for received in batch] if single is None else []
        with tracing.span(name, traceparent=single, links=links, kind=SpanKind.CONSUMER, size=len(batch)):
            await not_cancelled(self._handler(batch))

    async def _commit(self, session: Session, timeout: float) -> None:
        points = {tp: point for tp, point in self._points.items() if tp in session.partitions}
        if await session.commit(points, timeout):
            self._points = {tp: point for tp, point in self._points.items() if points.get(tp) != point}

    async def _revoking(self, session: Session) -> None:
        """Let the batch in hand end before its partitions move, if that is soon; then commit."""
        await wait_or_stop(self._idle, REVOKE_GRACE_S)
        await self._commit(session, 2.0)
        self._points.clear()

    def _assigning(self, partitions: frozenset[TopicPartition]) -> None:
        self._points.clear()  # of an earlier assignment, perhaps of a log that is no more

    async def _drain(self, session: Session | None, timeout: float) -> None:
        if session is not None:
            await self._commit(session, 1.0)
