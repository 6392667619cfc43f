"""What every connection to the broker shares: no topic by accident, and word when the broker dies.

Invariants
* No client of this process makes the broker create a topic as a side effect of asking for it: such a
  topic would have the broker's default partitions instead of those of `topics.py`.
* A `BrokerWatch` fires once the broker closes its connection. An in-memory broker that died has lost every
  topic and offset, and acknowledges writes to topics that it no longer has; so everything that was open
  before must be opened anew, after `ensure_topics`.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import Any

import aiokafka.client
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from sandpiper.bus.settings import BusSettings

_NO_CREATION = partial(MetadataRequest, allow_auto_topic_creation=False)


def client_options(settings: BusSettings, client_id: str) -> dict[str, Any]:
    """Arguments that every aiokafka client takes; also forbids topic creation by metadata requests.

    aiokafka 0.14 asks for metadata with auto-creation allowed and has no option for it.
    """
    aiokafka.client.MetadataRequest = _NO_CREATION
    return {
        "bootstrap_servers": [server.strip() for server in settings.bootstrap.split(",")],
        "client_id": client_id,
        "request_timeout_ms": settings.request_timeout_ms,
        "retry_backoff_ms": settings.retry_backoff_ms,
        # Short, so that topics which come back after a broker lost them are seen soon.
        "metadata_max_age_ms": 30_000 if settings.is_kafka else 5_000,
    }


# Tansu closes a connection that was idle for 15 minutes; that must not look like its death.
ROTATE_S = 300.0


class BrokerWatch:
    """An idle connection to a broker without durable state; `lost` is set when the broker closes it."""

    def __init__(self, settings: BusSettings, rotate_s: float = ROTATE_S) -> None:
        self._settings = settings
        self._rotate_s = rotate_s
        self.lost = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect (OSError or TimeoutError when that fails). A durable broker needs no watch."""
        if self._settings.is_kafka:
            return
        self._task = asyncio.create_task(self._watch(*await self._connect()), name="broker-watch")

    async def stop(self) -> None:
        """Let go of the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = self._settings.bootstrap.split(",")[0].strip().rpartition(":")
        async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
            return await asyncio.open_connection(host, int(port))

    async def _watch(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Wait for the end of the connection; from time to time go on with a fresh one."""
        try:
            while not await self._ended(reader):
                old = writer
                reader, writer = await self._connect()
                old.close()
        except (OSError, TimeoutError):
            pass
        finally:
            writer.close()
        self.lost.set()

    async def _ended(self, reader: asyncio.StreamReader) -> bool:
        """True when the broker closed the connection, False when it is time for a fresh one."""
        try:
            async with asyncio.timeout(self._rotate_s):
                while await reader.read(1024):
                    pass
        except TimeoutError:
            return False
        return True


# Where aiokafka 0.14 keeps its background tasks, by attribute of the client that owns them.
_TASKS = {
    "_coordinator": (
        "_coordination_task",
        "_heartbeat_task",
        "_commit_refresh_task",
        "_reset_committed_task",
    ),
    "_fetcher": ("_fetch_task",),
    "_sender": ("_sender_task",),
    "_client": ("_sync_task",),
    "client": ("_sync_task",),
}


async def close_within(kafka: Any, timeout: float) -> None:
    """Stop an aiokafka consumer or producer, by force after `timeout` or when its own `stop` fails."""
    stopping = asyncio.ensure_future(kafka.stop())
    clean = False
    try:
        await asyncio.wait({stopping}, timeout=timeout)
        clean = stopping.done() and not stopping.cancelled() and stopping.exception() is None
    finally:
        if not clean:
            await abandon(kafka)
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)


async def abandon(kafka: Any) -> None:
    """Tear down an aiokafka consumer or producer whose own `stop` waits for a broker that is gone.

    Cancels its background tasks, so that nothing of it reaches a broker that comes back, and drops its
    connections. Takes a second at most.
    """
    tasks: set[asyncio.Future[Any]] = set(getattr(getattr(kafka, "_fetcher", None), "_pending_tasks", ()))
    for part, names in _TASKS.items():
        owner = getattr(kafka, part, None)
        tasks |= {task for name in names if (task := getattr(owner, name, None)) is not None}
    client = getattr(kafka, "client", None) or kafka._client
    if (batches := getattr(kafka, "_message_accumulator", None)) is not None:
        batches.fail_all(KafkaError("given up"))
    for connection in list(client._conns.values()):
        connection.close()
    for _ in range(3):  # the sender answers the first by waiting for its requests, which never end
        pending = {task for task in tasks if not task.done()}
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=0.2)
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()  # retrieved: nobody else will
    kafka._closed = True
    with contextlib.suppress(Exception):
        async with asyncio.timeout(0.5):
            await client.close()
