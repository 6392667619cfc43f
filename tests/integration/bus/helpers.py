"""Small parts that the bus tests share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from sandpiper.bus.base import ConsumerBase
from sandpiper.bus.consumer import Consumer
from sandpiper.bus.errors import BusUnavailable
from sandpiper.bus.message import Outgoing, Received
from sandpiper.bus.producer import Producer
from sandpiper.bus.settings import BusSettings
from sandpiper.topics import Topic, dlq_of
from sandpiper.v1.common_pb2 import Blob
from sandpiper.v1.events_pb2 import DeadLetter
from sandpiper.v1.run_pb2 import RunCommand


async def eventually(condition: Callable[[], Any], timeout: float = 60.0) -> None:
    """Wait until `condition()` is true; AssertionError when it is not in time."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not true within {timeout} s: {condition}"
        await asyncio.sleep(0.02)


@asynccontextmanager
async def producing(settings: BusSettings, claims: Any = None) -> AsyncIterator[Producer]:
    """A started producer."""
    producer = Producer(settings, claims)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


@asynccontextmanager
async def consuming(*consumers: ConsumerBase) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Consumers that run within the block and must end by themselves within a stop."""
    tasks = [asyncio.create_task(consumer.run()) for consumer in consumers]
    try:
        yield tasks
    finally:
        await asyncio.gather(*(consumer.stop(2.0) for consumer in consumers))
        await asyncio.wait(tasks, timeout=5.0)
        assert all(task.done() for task in tasks)


def command(topic: Topic, name: str, key: str | None = None, **more: Any) -> Outgoing:
    """A message that carries `name`."""
    return Outgoing(topic, RunCommand(run_id=name), key or name, **more)


class Names:
    """A handler that notes which messages came, in order."""

    def __init__(self) -> None:
        self.all: list[str] = []

    async def __call__(self, received: Received[Any]) -> None:
        self.all.append(received.message.run_id)

    def __len__(self) -> int:
        return len(self.all)


async def dead_letters(settings: BusSettings, topic: Topic, count: int) -> list[DeadLetter]:
    """The first `count` dead letters of a topic."""
    found: list[DeadLetter] = []

    async def keep(received: Received[Any]) -> None:
        found.append(received.message)

    reader = Consumer(
        settings,
        None,
        {dlq_of(topic): keep},
        Producer(settings, None),
        None,
        broadcast=True,
        from_beginning=True,
    )
    async with consuming(reader):
        await eventually(lambda: len(found) >= count)
    return found


class MemoryClaims:
    """A claim store in memory that can lose, corrupt and be away."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.away = 0

    async def put_by_digest(self, prefix: str, data: bytes, suffix: str = "") -> Blob:
        import hashlib  # noqa: PLC0415

        digest = hashlib.sha256(data).hexdigest()
        uri = f"s3://test/{prefix}/{digest}"
        self.blobs[uri] = data
        return Blob(uri=uri, sha256=digest, bytes=len(data))

    async def get(self, blob: Blob) -> bytes:
        if self.away > 0:
            self.away -= 1
            raise BusUnavailable("store is away")
        return self.blobs[blob.uri]
