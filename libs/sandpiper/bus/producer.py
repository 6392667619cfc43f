"""Sends messages and says so only when the broker has them.

Invariants
* `send` returns after all in-sync replicas acknowledged, or raises; a message may arrive twice, never
  silently not at all.
* A connection that the broker dropped is not reused on a broker without durable state (see `client`).
* `stop` ends within its timeout, whatever the broker does.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError
from opentelemetry.trace import SpanKind

from sandpiper.bus.admin import ensure_topics
from sandpiper.bus.backoff import Backoff
from sandpiper.bus.claims import ClaimStore, check_in
from sandpiper.bus.client import BrokerWatch, client_options
from sandpiper.bus.errors import BusUnavailable
from sandpiper.bus.message import TRACEPARENT, Outgoing, RawHeaders
from sandpiper.bus.settings import BusSettings
from sandpiper.telemetry import metrics, tracing
from sandpiper.topics import Topic

__all__ = ["BusUnavailable", "Producer"]

log = structlog.get_logger(__name__)


class Producer:
    """One connection for all topics of a service. Safe to share between tasks."""

    def __init__(
        self, settings: BusSettings, claims: ClaimStore | None, client_id: str = "sandpiper"
    ) -> None:
        self._settings = settings
        self._claims = claims
        self._client_id = client_id
        self._kafka: AIOKafkaProducer | None = None
        self._watch = BrokerWatch(settings)
        self._opening = asyncio.Lock()
        self._stopped = False
        self._out = False

    async def start(self) -> None:
        """Connect. Raises BusUnavailable when the broker does not answer within `send_timeout_s`."""
        try:
            async with asyncio.timeout(self._settings.send_timeout_s):
                for pause in Backoff().pauses():
                    with contextlib.suppress(KafkaError, OSError, TimeoutError, BusUnavailable):
                        await self._connection()
                        return
                    await asyncio.sleep(pause)
        except TimeoutError as late:
            raise BusUnavailable(f"no broker at {self._settings.bootstrap}") from late

    async def send(self, out: Outgoing, *, timeout: float | None = None) -> None:
        """Send and wait for the acknowledgement.

        Raises BusUnavailable after `timeout` (default `send_timeout_s`), TypeError for a message of another
        topic, ValueError for a partition that does not exist or a value that needs a missing claim store.
        """
        value, headers = out.encode()
        await self.send_encoded(out.topic, out.key, out.partition, value, headers, timeout=timeout)

    async def send_encoded(
        self,
        topic: Topic | str,
        key: str | bytes | None,
        partition: int | None,
        value: bytes,
        headers: RawHeaders,
        *,
        timeout: float | None = None,
    ) -> None:
        """Send what `Outgoing.encode` made earlier (an outbox row). Errors as in `send`."""
        name = topic if isinstance(topic, str) else topic.name
        texts = dict(headers)
        parent = texts[TRACEPARENT].decode() if TRACEPARENT in texts else None
        with tracing.span(f"{name} publish", traceparent=parent, kind=SpanKind.PRODUCER, topic=name):
            traced = _with_traceparent(headers, tracing.current_traceparent())
            began = time.monotonic()
            value, traced = await check_in(self._claims, value, traced)
            record = {
                "value": value,
                "key": key.encode() if isinstance(key, str) else key,
                "partition": partition,
                "headers": traced,
            }
            await self._deliver(name, record, self._settings.send_timeout_s if timeout is None else timeout)
        metrics.MESSAGES_PRODUCED.labels(name).inc()
        metrics.PRODUCE_SECONDS.labels(name).observe(time.monotonic() - began)

    async def stop(self, timeout: float = 5.0) -> None:
        """Flush and disconnect; what the broker did not take within `timeout` is dropped."""
        self._stopped = True
        async with self._opening:
            await self._close(timeout)

    async def _deliver(self, name: str, record: dict[str, Any], timeout: float) -> None:
        error: Exception | None = None
        try:
            async with asyncio.timeout(timeout):
                for pause in Backoff(0.05, 2.0).pauses():
                    try:
                        await self._attempt(name, record)
                    except (KafkaError, OSError, TimeoutError, BusUnavailable) as failure:
                        if isinstance(failure, MessageSizeTooLargeError):
                            raise ValueError(str(failure)) from failure
                        error = failure
                        await self._after_failure(name, failure)
                    else:
                        self._note_recovery()
                        return
                    await asyncio.sleep(pause)
        except TimeoutError as late:
            raise BusUnavailable(f"{name}: not acknowledged within {timeout:.1f} s: {error!r}") from (
                error or late
            )

    async def _attempt(self, name: str, record: dict[str, Any]) -> None:
        kafka = await self._connection()
        watch = self._watch
        partitions = await kafka.partitions_for(name)
        if record["partition"] is not None and record["partition"] not in partitions:
            raise ValueError(f"{name} has no partition {record['partition']}")
        future = await kafka.send(name, **record)
        lost = asyncio.create_task(watch.lost.wait())
        try:
            await asyncio.wait({future, lost}, return_when=asyncio.FIRST_COMPLETED)
            if watch.lost.is_set():
                raise BusUnavailable("broker went away")
            future.result()
        finally:
            lost.cancel()
            if future.done() and not future.cancelled():
                future.exception()  # retrieved, so that asyncio does not complain of it

    async def _after_failure(self, name: str, failure: Exception) -> None:
        if not self._out:
            self._out = True
            log.warning("bus.send_failing", topic=name, error=repr(failure))
        if getattr(failure, "retriable", False) and not self._watch.lost.is_set():
            return
        async with self._opening:
            await self._close(timeout=1.0)

    def _note_recovery(self) -> None:
        if self._out:
            self._out = False
            log.info("bus.send_recovered")

    async def _connection(self) -> AIOKafkaProducer:
        async with self._opening:
            if self._stopped:
                raise BusUnavailable("producer is stopped")
            if self._kafka is not None and self._watch.lost.is_set():
                await self._close(timeout=1.0)
            if self._kafka is None:
                await self._open()
            return self._kafka

    async def _open(self) -> None:
        watch = BrokerWatch(self._settings)
        await watch.start()
        kafka = AIOKafkaProducer(
            **client_options(self._settings, self._client_id),
            acks="all",
            enable_idempotence=self._settings.is_kafka,
            linger_ms=0,
        )
        try:
            if not self._settings.is_kafka:
                await ensure_topics(self._settings, timeout=10.0)
            await kafka.start()
        except BaseException:
            await watch.stop()
            with contextlib.suppress(Exception):
                await kafka.stop()
            raise
        self._watch, self._kafka = watch, kafka

    async def _close(self, timeout: float) -> None:
        kafka, self._kafka = self._kafka, None
        await self._watch.stop()
        if kafka is None:
            return
        try:
            async with asyncio.timeout(timeout):
                await kafka.stop()
        except Exception as error:
            log.info("bus.producer_abandoned", error=repr(error))


def _with_traceparent(headers: RawHeaders, traceparent: str | None) -> RawHeaders:
    """The headers with the publishing span as the receiver's parent."""
    if traceparent is None:
        return headers
    kept = [(name, value) for name, value in headers if name != TRACEPARENT]
    return [*kept, (TRACEPARENT, traceparent.encode())]
