"""One message from its record to its end: handled, dead-lettered, or left because the consumer stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from aiokafka import ConsumerRecord
from opentelemetry.trace import SpanKind

from sandpiper.bus.backoff import Backoff, wait_or_stop
from sandpiper.bus.errors import Reject, Undeliverable, is_transient
from sandpiper.bus.message import Received
from sandpiper.bus.records import Records, Stopping
from sandpiper.clock import Clock
from sandpiper.telemetry import metrics, tracing

log = structlog.get_logger(__name__)

Handler = Callable[[Received[Any]], Awaitable[None]]


class HandlerCancelled(Exception):
    """Something inside a handler was cancelled, though nobody cancelled the handler."""


async def not_cancelled(work: Awaitable[None]) -> None:
    """Await a handler; a cancellation that is not the caller's own becomes an ordinary failure."""
    try:
        await work
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise HandlerCancelled("cancelled from within") from None


class Handling:
    """Calls handlers until each message has come to its end."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        records: Records,
        stopping: asyncio.Event,
        clock: Clock,
        max_tries: int,
        retry_for_s: float,
        backoff: Backoff,
    ) -> None:
        self._handlers = handlers
        self._records = records
        self._stopping = stopping
        self._clock = clock
        self._max_tries = max_tries
        self._retry_for_s = retry_for_s
        self._backoff = backoff

    async def finish(self, record: ConsumerRecord) -> None:
        """Handle or dead-letter. Raises Stopping, or DlqLimitExceeded."""
        topic, began, tries = record.topic, time.monotonic(), 0
        metrics.MESSAGE_AGE_SECONDS.labels(topic).observe(
            max(0.0, self._clock.time() - record.timestamp / 1000)
        )
        while True:
            tries += 1
            try:
                await self._call(await self._records.decode(record), tries)
            except (Undeliverable, Reject) as refusal:
                await self._records.dead_letter(record, refusal.reason, refusal.detail, tries)
                break
            except Exception as error:
                if self._given_up(error, tries, time.monotonic() - began):
                    log.warning("bus.handler_gave_up", topic=topic, tries=tries, exc_info=True)
                    await self._records.dead_letter(record, "handler_error", repr(error), tries)
                    break
                await self._pause(topic, tries, error)
            else:
                self._records.handled(record)
                break
        metrics.HANDLER_SECONDS.labels(topic).observe(time.monotonic() - began)

    def _given_up(self, error: Exception, tries: int, elapsed: float) -> bool:
        return elapsed > self._retry_for_s if is_transient(error) else tries >= self._max_tries

    async def _pause(self, topic: str, tries: int, error: Exception) -> None:
        metrics.HANDLER_RETRIES.labels(topic).inc()
        log.info("bus.handler_retry", topic=topic, tries=tries, error=repr(error))
        if await wait_or_stop(self._stopping, self._backoff.pause(tries)):
            raise Stopping from None

    async def _call(self, received: Received[Any], tries: int) -> None:
        headers = received.headers
        with (
            structlog.contextvars.bound_contextvars(message_id=headers.message_id),
            tracing.span(
                f"{received.topic.name} process",
                traceparent=headers.traceparent,
                kind=SpanKind.CONSUMER,
                message_id=headers.message_id,
                key=received.key,
                tries=tries,
            ),
        ):
            await not_cancelled(self._handlers[received.topic.name](received))
