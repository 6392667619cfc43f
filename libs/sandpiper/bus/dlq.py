"""Dead letters: what a consumer cannot handle, kept for operators, and the limit that stops a bad deploy."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

import structlog
from aiokafka import ConsumerRecord

from sandpiper.bus.claims import LIMIT_BYTES
from sandpiper.bus.errors import DlqLimitExceeded, Reason
from sandpiper.bus.message import Headers, RawHeaders, encode_headers, header_texts
from sandpiper.clock import Clock
from sandpiper.ids import new_id
from sandpiper.telemetry import metrics
from sandpiper.topics import Topic
from sandpiper.v1.events_pb2 import DeadLetter

log = structlog.get_logger(__name__)

VALUE_BYTES = LIMIT_BYTES
DETAIL_CHARS = 2000


class Sender(Protocol):
    """The part of a Producer that dead letters need."""

    async def send_encoded(
        self,
        topic: Topic | str,
        key: str | bytes | None,
        partition: int | None,
        value: bytes,
        headers: RawHeaders,
    ) -> None:
        """Send and wait for the acknowledgement."""
        ...


@dataclass(frozen=True)
class DlqLimit:
    """Too much: more than `letters` in `window_s`, and more than `ratio` of that window's messages."""

    letters: int = 20
    window_s: float = 60.0
    ratio: float = 0.2


class DlqWindow:
    """Counts the outcomes of the last window."""

    def __init__(self, limit: DlqLimit, clock: Clock) -> None:
        self._limit = limit
        self._clock = clock
        self._outcomes: deque[tuple[float, bool]] = deque()
        self._dead = 0

    def record(self, dead: bool) -> None:
        """Count one message. Raises DlqLimitExceeded when the window holds too many dead ones."""
        now = self._clock.monotonic()
        self._outcomes.append((now, dead))
        self._dead += dead
        while self._outcomes[0][0] < now - self._limit.window_s:
            self._dead -= self._outcomes.popleft()[1]
        if dead and self._dead > self._limit.letters and self._dead > self._limit.ratio * len(self._outcomes):
            raise DlqLimitExceeded(
                f"{self._dead} of {len(self._outcomes)} messages of the last "
                f"{self._limit.window_s:.0f} s were dead-lettered"
            )


class DeadLetters:
    """Writes dead letters of one consumer."""

    def __init__(self, sender: Sender, consumer: str, limit: DlqLimit, clock: Clock) -> None:
        self._sender = sender
        self._consumer = consumer
        self._clock = clock
        self.window = DlqWindow(limit, clock)

    async def put(
        self, topic: Topic, record: ConsumerRecord, reason: Reason, detail: str, tries: int
    ) -> None:
        """Publish the record to the topic's DLQ, then count it.

        Raises BusUnavailable when it could not be published and DlqLimitExceeded when it was one too many.
        """
        value = record.value or b""
        if len(value) > VALUE_BYTES:  # foreign: our own messages leave a claim check behind long before
            detail = f"{detail} (value cut from {len(value)} bytes)"
        letter = DeadLetter(
            topic=topic.name,
            partition=record.partition,
            offset=record.offset,
            key=record.key or b"",
            value=value[:VALUE_BYTES],
            headers=header_texts(record.headers),
            reason=reason,
            detail=detail[-DETAIL_CHARS:],
            consumer=self._consumer,
            at=self._clock.time(),
            tries=tries,
        )
        headers = encode_headers(
            Headers(
                message_id=new_id("dlq"),
                causation_id=letter.headers.get("message-id"),
                traceparent=letter.headers.get("traceparent"),
            )
        )
        await self._sender.send_encoded(topic.dlq, record.key, None, letter.SerializeToString(), headers)
        metrics.MESSAGES_DEAD_LETTERED.labels(topic.name, reason).inc()
        log.error(
            "bus.dead_letter",
            topic=topic.name,
            partition=record.partition,
            offset=record.offset,
            reason=reason,
            detail=detail[:500],
            tries=tries,
        )
        self.window.record(dead=True)
