"""Fans live events out to the event streams of runs.

Invariants:
* publishing never waits: a client that does not keep up loses its oldest events and is told how many;
* events of one run reach a client in the order in which they were published, each at most once;
* memory is bounded: queues per client, clients in all, and one history for those that come back.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sandpiper.telemetry import metrics
from services.api.problems import unavailable


@dataclass(frozen=True)
class LiveEvent:
    """One event of a run; `data` is JSON."""

    run_id: str
    kind: str
    data: str
    id: str = ""


class Client:
    """The queue of one event stream."""

    def __init__(self, run_id: str, limit: int) -> None:
        self.run_id = run_id
        self._events: deque[LiveEvent] = deque()
        self._limit = limit
        self._ready = asyncio.Event()
        self._lost = 0
        self._closed = False

    def offer(self, event: LiveEvent) -> None:
        """Queue an event; drops the oldest of a full queue."""
        if len(self._events) >= self._limit:
            self._events.popleft()
            self._lost += 1
            metrics.EVENTS_LOST.inc()
        self._events.append(event)
        self._ready.set()

    def close(self) -> None:
        """No more events: what is queued is still delivered."""
        self._closed = True
        self._ready.set()

    async def events(self, heartbeat_s: float) -> AsyncIterator[LiveEvent | None]:
        """Events as they come; None when `heartbeat_s` passed without any. Ends after `close`."""
        while True:
            if self._lost:
                lost, self._lost = self._lost, 0
                yield LiveEvent(self.run_id, "lost", f'{{"count":{lost}}}')
            if self._events:
                yield self._events.popleft()
                continue
            if self._closed:
                return
            self._ready.clear()
            try:
                await asyncio.wait_for(self._ready.wait(), heartbeat_s)
            except TimeoutError:
                yield None


class Hub:
    """All event streams of this process."""

    def __init__(self, max_clients: int, queue: int, history: int) -> None:
        self._max_clients, self._queue = max_clients, queue
        self._clients: set[Client] = set()
        self._history: deque[LiveEvent] = deque(maxlen=history)
        self._epoch = secrets.token_hex(4)
        self._sequence = 0
        self._closed = False

    @property
    def watched(self) -> set[str]:
        """Runs that somebody watches now."""
        return {client.run_id for client in self._clients}

    @property
    def full(self) -> bool:
        """No more streams now."""
        return self._closed or len(self._clients) >= self._max_clients

    def publish(self, run_id: str, kind: str, data: str) -> None:
        """Give an event its id and pass it to everyone who watches the run."""
        self._sequence += 1
        event = LiveEvent(run_id, kind, data, f"{self._epoch}-{self._sequence}")
        self._history.append(event)
        for client in self._clients:
            if client.run_id == run_id:
                client.offer(event)

    @contextmanager
    def watch(self, run_id: str, last_id: str | None = None) -> Iterator[Client]:
        """A client for the block. What it missed since `last_id` is queued, as far as it is remembered."""
        if self.full:
            raise unavailable("too many event streams are open; try again later")
        client = Client(run_id, self._queue)
        for event in self._missed(run_id, last_id):
            client.offer(event)
        self._clients.add(client)
        metrics.EVENT_STREAMS.inc()
        try:
            yield client
        finally:
            self._clients.discard(client)
            metrics.EVENT_STREAMS.dec()

    def close(self, run_id: str | None = None) -> None:
        """End the streams of a run; without one, all streams, and refuse new ones."""
        self._closed = self._closed or run_id is None
        for client in self._clients:
            if run_id in (None, client.run_id):
                client.close()

    def _missed(self, run_id: str, last_id: str | None) -> list[LiveEvent]:
        epoch, _, number = (last_id or "").partition("-")
        if epoch != self._epoch or not number.isdecimal() or len(number) > 18:
            return []
        seen = int(number)
        return [e for e in self._history if e.run_id == run_id and int(e.id.partition("-")[2]) > seen]
