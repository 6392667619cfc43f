"""Sends messages and says so only when the broker has them.

Invariants
* `send` returns after all in-sync replicas acknowledged, or raises; a message may arrive twice, never
  silently not at all. Order holds for sends that follow one another, not for those that overlap a retry.
* A connection that failed for good is replaced, once, whoever of its users notices first.
* `stop` ends within its timeout and a second, whatever the broker does.
"""

from __future__ import annotations

import asyncio
import time

import structlog
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, UnknownTopicOrPartitionError
from opentelemetry.trace import SpanKind

from sandpiper.bus.backoff import Backoff
from sandpiper.bus.claims import ClaimStore, check_in
from sandpiper.bus.errors import BusUnavailable
from sandpiper.bus.link import Link, Record
from sandpiper.bus.message import TRACEPARENT, Outgoing, RawHeaders
from sandpiper.bus.settings import BusSettings
from sandpiper.telemetry import metrics, tracing
from sandpiper.topics import TOPICS, Topic

__all__ = ["BusUnavailable", "Producer"]

log = structlog.get_logger(__name__)

FAILURES = (KafkaError, OSError, TimeoutError, BusUnavailable)
REPLACE_S = 1.0


class Producer:
    """One connection for all topics of a service. Safe to share between tasks."""

    def __init__(
        self, settings: BusSettings, claims: ClaimStore | None, client_id: str = "sandpiper"
    ) -> None:
        self._settings = settings
        self._claims = claims
        self._client_id = client_id
        self._topics = dict(TOPICS)
        self._link: Link | None = None
        self._linking = asyncio.Lock()
        self._stopped = False
        self._failing = False

    @property
    def connected(self) -> bool:
        """True while sends go through: a readiness check."""
        return self._link is not None and not self._link.lost and not self._failing

    async def start(self) -> None:
        """Connect. Raises BusUnavailable when the broker does not answer within `send_timeout_s`."""
        error: Exception | None = None
        try:
            async with asyncio.timeout(self._settings.send_timeout_s):
                for pause in Backoff().pauses():
                    try:
                        await self._connection()
                        return
                    except FAILURES as failure:
                        error = failure
                    await asyncio.sleep(pause)
        except TimeoutError as late:
            raise BusUnavailable(f"no broker at {self._settings.bootstrap}: {error!r}") from (error or late)

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
        name = topic if isinstance(topic, str) else self._known(topic)
        parent = dict(headers).get(TRACEPARENT)
        with tracing.span(
            f"{name} publish",
            traceparent=parent.decode() if parent else None,
            kind=SpanKind.PRODUCER,
            topic=name,
        ):
            began = time.monotonic()
            value, headers = await check_in(self._claims, value, headers)
            record = Record(
                value=value,
                key=key.encode() if isinstance(key, str) else key,
                partition=partition,
                headers=_with_traceparent(headers, tracing.current_traceparent()),
            )
            await self._deliver(name, record, self._settings.send_timeout_s if timeout is None else timeout)
        metrics.MESSAGES_PRODUCED.labels(name).inc()
        metrics.PRODUCE_SECONDS.labels(name).observe(time.monotonic() - began)

    async def stop(self, timeout: float = 5.0) -> None:
        """Flush and disconnect; what the broker did not take within `timeout` is dropped."""
        self._stopped = True
        link, self._link = self._link, None
        if link is not None:
            await link.close(timeout)

    def _known(self, topic: Topic) -> str:
        """Remember a topic that is not in the table, to make it again when a broker lost it."""
        self._topics.setdefault(topic.name, topic)
        return topic.name

    async def _deliver(self, name: str, record: Record, timeout: float) -> None:
        error: Exception | None = None
        try:
            async with asyncio.timeout(timeout):
                for pause in Backoff(0.05, 2.0).pauses():
                    error = await self._attempt(name, record)
                    if error is None:
                        return
                    await asyncio.sleep(pause)
        except TimeoutError as late:
            problem = f"{name}: not acknowledged within {timeout:.1f} s: {error!r}"
            raise BusUnavailable(problem) from (error or late)

    async def _attempt(self, name: str, record: Record) -> Exception | None:
        """Try once; returns a failure that another try may heal."""
        if self._stopped:
            raise BusUnavailable("producer is stopped")
        link: Link | None = None
        try:
            link = await self._connection()
            await link.send(name, record)
        except MessageSizeTooLargeError as failure:
            raise ValueError(f"{name}: {failure}") from failure
        except FAILURES as failure:
            self._note_failure(name, failure)
            if link is not None and _is_broken(link, failure):
                await self._replace(link)
            return failure
        self._note_success()
        return None

    async def _connection(self) -> Link:
        if self._link is not None and self._link.lost:
            await self._replace(self._link)
        async with self._linking:
            if self._link is None:
                link = await Link.open(self._settings, self._client_id, self._topics.values())
                if self._stopped:
                    await link.close(0)
                    raise BusUnavailable("producer is stopped")
                self._link = link
            return self._link

    async def _replace(self, link: Link) -> None:
        """Let go of a broken link, unless someone did so before."""
        if self._link is link:
            self._link = None
            await link.close(REPLACE_S)

    def _note_failure(self, name: str, failure: Exception) -> None:
        if not self._failing:
            self._failing = True
            log.warning("bus.send_failing", topic=name, error=repr(failure))

    def _note_success(self) -> None:
        if self._failing:
            self._failing = False
            log.info("bus.send_recovered")


def _is_broken(link: Link, failure: Exception) -> bool:
    """True when the link will not heal by itself: broker lost, topic lost, or a fatal producer state."""
    healing = getattr(failure, "retriable", False) and not isinstance(failure, UnknownTopicOrPartitionError)
    return link.lost or not healing


def _with_traceparent(headers: RawHeaders, traceparent: str | None) -> RawHeaders:
    """The headers with the publishing span as the receiver's parent."""
    if traceparent is None:
        return headers
    kept = [(name, value) for name, value in headers if name != TRACEPARENT]
    return [*kept, (TRACEPARENT, traceparent.encode())]
