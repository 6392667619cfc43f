"""Transactional outbox: rows that a committed transaction owes to Kafka, and the relay that pays.

Invariants:
* a message is published only if the transaction that caused it committed;
* a row is marked published only after the broker acknowledged it (a crash in between publishes it again
  under the same message id, which consumers drop);
* rows whose topic needs a placement wait, without holding up others, until there is somewhere to place.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

import structlog
from google.protobuf.message import Message
from sqlalchemy import delete, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from sandpiper.bus.message import Outgoing
from sandpiper.bus.producer import BusUnavailable, Producer
from sandpiper.clock import Clock
from sandpiper.ids import new_id
from sandpiper.store.db.engine import Sessions
from sandpiper.store.db.models import OutboxRow
from sandpiper.telemetry import tracing
from sandpiper.topics import SANDBOX_COMMANDS, TOPICS, Topic

log = structlog.get_logger(__name__)


class Placer(Protocol):
    """Chooses the partition of a sandbox command."""

    def available(self) -> bool:
        """Whether any executor is alive."""
        ...

    def choose(self, affinity: int | None) -> int | None:
        """A partition (the affine one while its owner lives), or None when no executor is alive."""
        ...


def add(
    session: AsyncSession,
    clock: Clock,
    topic: Topic,
    key: str,
    message: Message,
    *,
    deadline: float | None = None,
    partition: int | None = None,
    traceparent: str | None = None,
    causation_id: str | None = None,
) -> str:
    """Owe `message` to `topic`; returns its message id.

    `partition` is an affinity where the topic is placed, ignored elsewhere. `traceparent` defaults to the
    current span.
    """
    message_id = new_id("msg")
    headers = {
        "deadline": deadline,
        "traceparent": traceparent or tracing.current_traceparent(),
        "causation_id": causation_id,
    }
    session.add(
        OutboxRow(
            topic=topic.name,
            key=key,
            partition=partition,
            message_id=message_id,
            headers=headers,
            payload=message.SerializeToString(),
            created_at=clock.time(),
        )
    )
    return message_id


class OutboxRelay:
    """Publishes outbox rows, oldest first, a batch at once. Several may run; rows are locked, not shared."""

    def __init__(
        self,
        sessions: Sessions,
        producer: Producer,
        placer: Placer,
        clock: Clock,
        poll_s: float = 0.25,
        batch: int = 200,
    ) -> None:
        self._sessions = sessions
        self._producer = producer
        self._placer = placer
        self._clock = clock
        self._poll_s = poll_s
        self._batch = batch
        self._wake = asyncio.Event()
        self._set_aside: set[int] = set()
        """Rows that can't be published (a topic or bytes that this version does not know); a restart tries
        them again."""

    def wake(self) -> None:
        """Look now instead of at the next poll; call after a commit."""
        self._wake.set()

    async def run(self) -> None:
        """Relay until cancelled. A broker or database that is away is retried with a growing pause."""
        pause = self._poll_s
        while True:
            self._wake.clear()
            try:
                published = await self.relay_once()
                pause = self._poll_s
            except (BusUnavailable, SQLAlchemyError, OSError) as error:
                log.warning("outbox_relay_waits", error=str(error)[:200], pause_s=pause)
                published = 0
                await asyncio.sleep(pause)
                pause = min(pause * 2, 5.0)
            if published < self._batch:
                await self._sleep()

    async def _sleep(self) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), self._poll_s)
        except TimeoutError:
            return

    async def relay_once(self) -> int:
        """Publish up to one batch; returns how many rows were published."""
        async with self._sessions.begin() as session:
            rows = await self._unpublished(session)
            results = await asyncio.gather(*(self._publish(row) for row in rows), return_exceptions=True)
            done = [row.id for row, result in zip(rows, results, strict=True) if result is True]
            if done:
                await session.execute(
                    update(OutboxRow).where(OutboxRow.id.in_(done)).values(published_at=self._clock.time())
                )
        for row, result in zip(rows, results, strict=True):
            if isinstance(result, (BusUnavailable, OSError)) or not isinstance(result, Exception | bool):
                raise result
            if isinstance(result, Exception):
                self._set_aside.add(row.id)
                log.error("outbox_row_set_aside", row=row.id, topic=row.topic, error=repr(result)[:300])
        return len(done)

    async def _unpublished(self, session: AsyncSession) -> list[OutboxRow]:
        query = select(OutboxRow).where(OutboxRow.published_at.is_(None))
        if self._set_aside:
            query = query.where(OutboxRow.id.not_in(self._set_aside))
        if not self._placer.available():
            query = query.where(OutboxRow.topic != SANDBOX_COMMANDS.name)
        query = query.order_by(OutboxRow.id).limit(self._batch).with_for_update(skip_locked=True)
        return list((await session.scalars(query)).all())

    async def _publish(self, row: OutboxRow) -> bool:
        topic = TOPICS[row.topic]
        partition = None
        if topic is SANDBOX_COMMANDS:
            partition = self._placer.choose(row.partition)
            if partition is None:
                return False
        await self._producer.send(
            Outgoing(
                topic=topic,
                message=topic.message.FromString(row.payload),
                key=row.key,
                partition=partition,
                message_id=row.message_id,
                causation_id=row.headers.get("causation_id"),
                deadline=row.headers.get("deadline"),
                traceparent=row.headers.get("traceparent"),
            )
        )
        return True

    async def purge(self, keep_s: float) -> None:
        """Delete rows that were published more than `keep_s` seconds ago."""
        async with self._sessions.begin() as session:
            await session.execute(
                delete(OutboxRow).where(OutboxRow.published_at < self._clock.time() - keep_s)
            )
