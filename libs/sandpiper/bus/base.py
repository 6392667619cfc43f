"""What both kinds of consumer share: sessions that follow one another, decoding, dead letters, stopping.

Invariants
* `run` ends only by `stop`, by its own cancellation, or by a fatal error (DlqLimitExceeded, a bug); the loss
  of the broker is not fatal: a new session is opened after a bounded, jittered pause, and it is logged once.
* After `run` has ended nothing of the consumer runs.
* `stop` returns within its timeout plus FINISH_S, also when the broker does not answer any more.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

import structlog
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from sandpiper.bus.anchors import Anchors
from sandpiper.bus.assignor import StickyAssignor
from sandpiper.bus.backoff import Backoff, wait_or_stop
from sandpiper.bus.claims import ClaimStore
from sandpiper.bus.dlq import DeadLetters, DlqLimit
from sandpiper.bus.errors import BusUnavailable
from sandpiper.bus.producer import Producer
from sandpiper.bus.records import Records, Stopping
from sandpiper.bus.session import PartitionsCallback, Session, call_back
from sandpiper.bus.settings import BusSettings
from sandpiper.clock import Clock, SystemClock
from sandpiper.telemetry import metrics
from sandpiper.topics import Topic

log = structlog.get_logger(__name__)
R = TypeVar("R")

# After its timeout a stopping consumer still cancels handlers, commits and leaves, each within a moment.
LEAVE_S = 1.0
FINISH_S = 4.0
POLL_S = 0.2
# A session that lived this long was healthy: the next outage starts with short pauses again.
HEALTHY_S = 10.0
OUTAGES = (KafkaError, OSError, TimeoutError, BusUnavailable)


class ConsumerBase(ABC):
    """Sessions, decoding and dead letters; a subclass says what to do with records."""

    def __init__(
        self,
        settings: BusSettings,
        group: str | None,
        topics: Iterable[Topic],
        producer: Producer,
        claims: ClaimStore | None,
        *,
        dlq_limit: DlqLimit | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        client_id: str | None = None,
        broadcast: bool = False,
        from_beginning: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._group = None if broadcast else group
        self.name = group or client_id or "sandpiper"
        self._client_id = client_id or self.name
        self._topics = list(topics)
        self._clock = clock or SystemClock()
        self._user_assigned = on_assigned
        self._user_revoked = on_revoked
        self._anchors = Anchors(from_beginning, durable=settings.is_kafka)
        self._assignor = StickyAssignor()
        self._stopping = asyncio.Event()
        self._finished = asyncio.Event()
        self._finished.set()
        self._deadline = 0.0
        self._session: Session | None = None
        self._task: asyncio.Task[Any] | None = None
        self._joined = False
        self._away = False
        self._owned: frozenset[TopicPartition] = frozenset()
        dead_letters = DeadLetters(producer, self.name, dlq_limit or DlqLimit(), self._clock)
        self._records = Records(self._topics, claims, dead_letters, self._stopping)

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """Partitions assigned now; empty while the broker is away."""
        return self._session.partitions if self._session is not None and self._joined else frozenset()

    @property
    def connected(self) -> bool:
        """True while a session is open: a readiness check."""
        return self._joined and self._session is not None and not self._session.lost.is_set()

    async def run(self) -> None:
        """Consume until `stop`. Raises DlqLimitExceeded; survives the loss of the broker."""
        self._task = asyncio.current_task()
        self._finished.clear()
        try:
            await self._follow_sessions()
        finally:
            try:
                await self._drain(self._session, self._drain_time())
                await self._leave(LEAVE_S)
            finally:
                self._finished.set()

    async def stop(self, timeout: float = 10.0) -> None:
        """Take no more, let what runs end until `timeout`, commit, leave. The rest is redelivered later."""
        if not self._stopping.is_set():
            self._deadline = time.monotonic() + timeout
            self._stopping.set()
        try:
            async with asyncio.timeout(timeout + FINISH_S):
                await self._finished.wait()
        except TimeoutError:
            log.error("bus.stop_forced", consumer=self.name)
            if self._task is not None:
                self._task.cancel()
                await asyncio.wait({self._task}, timeout=FINISH_S)

    # What a subclass does.

    @abstractmethod
    async def _work(self, session: Session) -> None:
        """Poll and handle until stopping."""

    @abstractmethod
    async def _drain(self, session: Session | None, timeout: float) -> None:
        """Let what runs end within `timeout`, then commit."""

    @abstractmethod
    async def _revoking(self, session: Session) -> None:
        """Commit what may be committed, briefly; then nothing of this assignment any more."""

    @abstractmethod
    def _assigning(self, partitions: frozenset[TopicPartition]) -> None:
        """A new assignment begins."""

    # Sessions.

    async def _follow_sessions(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                await self._work(await self._join())
            except Stopping:
                return
            except OUTAGES as error:
                failures = 1 if time.monotonic() - began > HEALTHY_S else failures + 1
                self._note_outage(error)
                await self._leave(LEAVE_S)
                pause = Backoff(0.1, self._settings.reconnect_max_s).pause(failures)
                await wait_or_stop(self._stopping, pause)

    async def _join(self) -> Session:
        session = self._session = Session(
            self._settings,
            self._client_id,
            self._group,
            self._topics,
            self._on_assigned,
            self._on_revoked,
            self._assignor,
            "earliest" if self._group else self._anchors.reset,
        )
        await self._unless_stopped(session.open(), session)
        if self._group is None:
            await self._unless_stopped(self._anchors.resume(session), session)
            await self._on_assigned(session.partitions)
        self._joined = True
        if self._away:
            self._away = False
            log.info("bus.consumer_back", consumer=self.name)
        return session

    async def _leave(self, timeout: float) -> None:
        self._joined = False
        session, self._session = self._session, None
        try:
            await self._tell_revoked()
        finally:
            if session is not None:
                await session.close(timeout)

    def _note_outage(self, error: Exception) -> None:
        metrics.BUS_RECONNECTS.labels(self.name).inc()
        if not self._away:
            self._away = True
            log.warning("bus.consumer_away", consumer=self.name, error=repr(error))

    async def _on_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self._assigning(partitions)
        self._owned = partitions
        if self._user_assigned is not None:
            await call_back(self._user_assigned, partitions)

    async def _on_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        if self._session is not None and partitions:
            await self._revoking(self._session)
        await self._tell_revoked()

    async def _tell_revoked(self) -> None:
        """Also when a session ends without a word from the broker: assigned and revoked come in pairs."""
        owned, self._owned = self._owned, frozenset()
        if owned and self._user_revoked is not None:
            await call_back(self._user_revoked, owned)

    async def _unless_stopped(self, work: Coroutine[Any, Any, R], session: Session) -> R:
        """The result of `work`; cancels it and raises once the consumer stops or the broker is lost."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._stopping.wait())
        lost = asyncio.ensure_future(session.lost.wait())
        try:
            await asyncio.wait({task, stop, lost}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if stop.done():
                raise Stopping
            raise BusUnavailable("broker closed its connection")
        finally:
            for waiter in (task, stop, lost):
                waiter.cancel()
            await asyncio.gather(task, stop, lost, return_exceptions=True)

    async def _until_deadline(self, work: Coroutine[Any, Any, R]) -> R:
        """The result of `work`; once the consumer stops it has until the deadline, then Stopping."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                await asyncio.wait({task}, timeout=self._drain_time())
            if not task.done():
                raise Stopping
            return task.result()
        finally:
            task.cancel()
            stop.cancel()
            await asyncio.gather(task, stop, return_exceptions=True)

    def _drain_time(self) -> float:
        return max(0.0, self._deadline - time.monotonic()) if self._stopping.is_set() else 0.0
