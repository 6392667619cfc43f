"""The watch on a broker without durable state: quiet while it lives, sure when it dies."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sandpiper.bus.client import _TASKS, BrokerWatch
from sandpiper.bus.settings import BusSettings


class FakeBroker:
    """Accepts connections and says nothing."""

    def __init__(self) -> None:
        self.writers: list[asyncio.StreamWriter] = []
        self.accepted = 0
        self.port = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self.writers.append(writer)
        await reader.read()
        self.writers.remove(writer)
        writer.close()

    def drop_all(self) -> None:
        for writer in self.writers:
            writer.close()

    def settings(self, kind: str = "tansu") -> BusSettings:
        return BusSettings.model_validate({"bootstrap": f"127.0.0.1:{self.port}", "broker": kind})


@asynccontextmanager
async def broker() -> AsyncIterator[FakeBroker]:
    fake = FakeBroker()
    server = await asyncio.start_server(fake.accept, "127.0.0.1", 0)
    fake.port = server.sockets[0].getsockname()[1]
    try:
        yield fake
    finally:
        server.close()
        fake.drop_all()
        await server.wait_closed()


async def within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


async def test_the_end_of_the_connection_is_the_loss_of_the_broker() -> None:
    async with broker() as fake:
        watch = BrokerWatch(fake.settings())
        await watch.start()
        assert not await within(watch.lost, 0.1)
        fake.drop_all()
        assert await within(watch.lost, 5)
        await watch.stop()


async def test_connections_are_renewed_before_the_broker_finds_them_idle() -> None:
    async with broker() as fake:
        watch = BrokerWatch(fake.settings(), rotate_s=0.05)
        await watch.start()
        assert not await within(watch.lost, 0.5)
        assert fake.accepted >= 4
        assert len(fake.writers) <= 2
        fake.drop_all()
        assert await within(watch.lost, 5)
        await watch.stop()


async def test_a_broker_that_takes_no_fresh_connection_is_lost() -> None:
    async with broker() as fake:
        watch = BrokerWatch(fake.settings(), rotate_s=0.2)
        await watch.start()
        watch._settings = BusSettings(bootstrap="127.0.0.1:1", broker="tansu")
        assert await within(watch.lost, 5)
        await watch.stop()


async def test_a_durable_broker_needs_no_watch_and_an_absent_one_cannot_be_watched() -> None:
    async with broker() as fake:
        watch = BrokerWatch(fake.settings("kafka"))
        await watch.start()
        assert fake.accepted == 0
        await watch.stop()
    with pytest.raises(OSError, match="Connect call failed"):
        await BrokerWatch(BusSettings(bootstrap="127.0.0.1:1", broker="tansu")).start()


def test_the_parts_of_aiokafka_that_have_no_public_name_are_still_there() -> None:
    from aiokafka import client as kafka_client  # noqa: PLC0415
    from aiokafka.consumer import fetcher, group_coordinator  # noqa: PLC0415
    from aiokafka.producer import message_accumulator, sender  # noqa: PLC0415

    assert "self._fetch_max_wait_ms" in inspect.getsource(fetcher.Fetcher._get_actions_per_node)
    assert "MetadataRequest(list(topics)" in inspect.getsource(kafka_client.AIOKafkaClient._metadata_update)
    assert hasattr(message_accumulator.MessageAccumulator, "fail_all")
    sources = {
        "_coordinator": inspect.getsource(group_coordinator),
        "_fetcher": inspect.getsource(fetcher),
        "_sender": inspect.getsource(sender),
        "_client": inspect.getsource(kafka_client),
        "client": inspect.getsource(kafka_client),
    }
    for part, names in _TASKS.items():
        for name in names:
            assert f"self.{name} = create_task(" in sources[part]
