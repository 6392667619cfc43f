"""One life of an aiokafka producer, from connecting to the loss of its broker.

Invariants
* Every call ends: by the broker's answer, by the loss of the connection, or by the caller's timeout.
* After `close` nothing of it sends any more, so a message that was given up on cannot reach a broker that
  comes back without its topics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, TypedDict

from aiokafka import AIOKafkaProducer

from sandpiper.bus.admin import ensure_topics
from sandpiper.bus.client import BrokerWatch, abandon, client_options, close_within
from sandpiper.bus.errors import BusUnavailable
from sandpiper.bus.message import RawHeaders
from sandpiper.bus.settings import BusSettings
from sandpiper.topics import Topic

TOPICS_TIMEOUT_S = 10.0


class Record(TypedDict):
    """What aiokafka's `send` takes beside the topic."""

    value: bytes
    key: bytes | None
    partition: int | None
    headers: RawHeaders


class Link:
    """A connected producer."""

    def __init__(self, kafka: AIOKafkaProducer, watch: BrokerWatch) -> None:
        self._kafka = kafka
        self._watch = watch

    @classmethod
    async def open(cls, settings: BusSettings, client_id: str, topics: Iterable[Topic]) -> Link:
        """Connect and make sure that `topics` exist. Raises KafkaError, OSError, BusUnavailable."""
        watch = BrokerWatch(settings)
        kafka = AIOKafkaProducer(
            **client_options(settings, client_id),
            acks="all",
            enable_idempotence=settings.is_kafka,
            linger_ms=0,
        )
        try:
            await watch.start()
            await ensure_topics(settings, topics, timeout=TOPICS_TIMEOUT_S)
            await kafka.start()
        except BaseException:
            await watch.stop()
            await abandon(kafka)
            raise
        return cls(kafka, watch)

    @property
    def lost(self) -> bool:
        """True once a broker without durable state closed its connection."""
        return self._watch.lost.is_set()

    async def send(self, topic: str, record: Record) -> None:
        """Send and wait for the acknowledgement.

        Raises KafkaError, BusUnavailable when the broker is lost meanwhile, ValueError for a partition that
        the topic does not have.
        """
        sending = asyncio.ensure_future(self._send(topic, record))
        lost = asyncio.ensure_future(self._watch.lost.wait())
        try:
            await asyncio.wait({sending, lost}, return_when=asyncio.FIRST_COMPLETED)
            if self.lost:
                raise BusUnavailable("broker closed its connection")
            await sending
        finally:
            for task in (sending, lost):
                task.cancel()
            await asyncio.gather(sending, lost, return_exceptions=True)

    async def _send(self, topic: str, record: Record) -> None:
        partitions = await self._kafka.partitions_for(topic)
        if record["partition"] is not None and record["partition"] not in partitions:
            raise ValueError(f"{topic} has no partition {record['partition']}")
        acknowledged = await self._kafka.send(topic, **record)
        # Seen here, so that asyncio does not complain of an answer that nobody waited for.
        acknowledged.add_done_callback(_seen)
        await acknowledged

    async def close(self, timeout: float) -> None:
        """Flush and disconnect, by force after `timeout` (at once when the broker is lost)."""
        try:
            await close_within(self._kafka, 0 if self.lost else timeout)
        finally:
            await self._watch.stop()


def _seen(answer: asyncio.Future[Any]) -> None:
    if not answer.cancelled():
        answer.exception()
