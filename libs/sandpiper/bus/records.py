"""From the broker's records to what handlers get; and to the DLQ where that is impossible."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from aiokafka import ConsumerRecord

from sandpiper.bus.backoff import Backoff, wait_or_stop
from sandpiper.bus.claims import ClaimStore, check_out
from sandpiper.bus.dlq import DeadLetters
from sandpiper.bus.errors import BusUnavailable, Reason
from sandpiper.bus.message import CLAIM, MESSAGE_ID, Received, decode_headers, header_texts, parse
from sandpiper.telemetry import metrics
from sandpiper.topics import Topic


class Stopping(Exception):
    """The consumer is stopping: leave what is not done uncommitted."""


def message_id(record: ConsumerRecord) -> str:
    """The message id; for a foreign record without one, its place and time."""
    found = header_texts(record.headers).get(MESSAGE_ID)
    return found or f"{record.topic}/{record.partition}/{record.offset}@{record.timestamp}"


class Records:
    """Decodes, dead-letters and counts the records of one consumer."""

    def __init__(
        self,
        topics: Iterable[Topic],
        claims: ClaimStore | None,
        dead_letters: DeadLetters,
        stopping: asyncio.Event,
    ) -> None:
        self.topics = {topic.name: topic for topic in topics}
        self._claims = claims
        self._dead_letters = dead_letters
        self._stopping = stopping

    async def decode(self, record: ConsumerRecord) -> Received[Any]:
        """What a handler gets. Raises Undeliverable, or a transient error of the claim store."""
        topic = self.topics[record.topic]
        texts = header_texts(record.headers)
        headers = decode_headers(texts, message_id(record))
        claim = texts.get(CLAIM)
        value = await check_out(self._claims, claim) if claim is not None else record.value or b""
        return Received(
            topic=topic,
            message=parse(topic, value),
            headers=headers,
            key=(record.key or b"").decode(errors="replace"),
            partition=record.partition,
            offset=record.offset,
            timestamp=record.timestamp / 1000,
        )

    async def dead_letter(self, record: ConsumerRecord, reason: Reason, detail: str, tries: int) -> None:
        """Publish to the DLQ, however long the broker is away.

        Raises Stopping when the consumer stops before, DlqLimitExceeded when this one was one too many.
        """
        for pause in Backoff(0.5, 10.0).pauses():
            try:
                await self._dead_letters.put(self.topics[record.topic], record, reason, detail, tries)
            except BusUnavailable:
                if await wait_or_stop(self._stopping, pause):
                    raise Stopping from None
            else:
                metrics.MESSAGES_CONSUMED.labels(record.topic, "dead_lettered").inc()
                return

    def handled(self, record: ConsumerRecord) -> None:
        """Count a message that its handler accepted."""
        self._dead_letters.window.record(dead=False)
        metrics.MESSAGES_CONSUMED.labels(record.topic, "ok").inc()
