"""The broker dies, hangs, and comes back; with its log (Kafka) or without it (Tansu)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sandpiper.bus.admin import ensure_topics
from sandpiper.bus.base import FINISH_S
from sandpiper.bus.batch import BatchConsumer
from sandpiper.bus.consumer import Consumer
from sandpiper.bus.errors import BusUnavailable
from sandpiper.bus.message import Received
from sandpiper.bus.producer import Producer
from sandpiper.bus.settings import BusSettings
from sandpiper.topics import Topic
from tests.integration.brokers import Broker, new_topic
from tests.integration.bus.helpers import Names, command, consuming, eventually, producing


async def test_consumers_and_producers_outlive_a_broker_restart(own_broker: Broker) -> None:
    settings = own_broker.settings
    topic = new_topic(partitions=3)
    await ensure_topics(settings, [topic])
    single, batched, seen = Names(), Names(), Names()
    gate = asyncio.Event()

    async def handle(received: Received[Any]) -> None:
        if received.message.run_id == "long":
            await gate.wait()
        await single(received)

    async def handle_batch(batch: list[Received[Any]]) -> None:
        for received in batch:
            await batched(received)

    async with producing(settings) as producer:
        consumers = [
            Consumer(settings, f"a-{topic.name}", {topic: handle}, producer, None),
            BatchConsumer(settings, f"b-{topic.name}", [topic], handle_batch, producer, None),
            Consumer(settings, None, {topic: seen}, producer, None, broadcast=True, from_beginning=True),
        ]
        before = ["long", *(f"before{number}" for number in range(9))]
        async with consuming(*consumers) as tasks:
            for number, name in enumerate(before):
                await producer.send(command(topic, name, partition=number % 3))
            await eventually(lambda: len(single) == 9 and len(batched) == 10 and len(seen) == 10)
            await asyncio.sleep(2 * settings.commit_interval_s)
            own_broker.kill()
            during = asyncio.create_task(producer.send(command(topic, "during", partition=0), timeout=240))
            await asyncio.sleep(1.5)
            own_broker.launch()
            await asyncio.to_thread(own_broker.wait)
            await during
            # A log that was lost is shorter now than the places remembered from the old one.
            await eventually(lambda: "during" in seen.all)
            # As many as before, so that a lost log grows past the places remembered from the old one.
            for number in range(15):
                await producer.send(command(topic, f"after{number}", partition=number % 3))
            gate.set()
            wanted = {*before, "during", *(f"after{number}" for number in range(15))}
            for names in (single, batched, seen):
                await eventually(lambda names=names: set(names.all) == wanted)  # type: ignore[misc]
            assert not any(task.done() for task in tasks)
    # At least once; and what was in hand over the restart was not begun a second time.
    assert single.all.count("long") == 1
    assert single.all.count("before0") == batched.all.count("before0") == seen.all.count("before0") == 1


async def test_stopping_is_bounded_when_the_broker_is_dead_and_starting_waits_for_it(
    own_broker: Broker,
) -> None:
    settings, topic = own_broker.settings, new_topic()
    async with _at_work(settings, topic) as stop_all:
        own_broker.kill()
        try:
            await stop_all()
            names = Names()
            consumer = Consumer(settings, f"g-{topic.name}", {topic: names}, Producer(settings, None), None)
            async with consuming(consumer) as tasks:
                await asyncio.sleep(1.0)
                assert not consumer.connected
                assert not tasks[0].done()
                own_broker.launch()
                await asyncio.to_thread(own_broker.wait)
                await eventually(lambda: consumer.connected)
                async with producing(settings) as producer:
                    await producer.send(command(topic, "hello"))
                    await eventually(lambda: "hello" in names.all)
        finally:
            if not own_broker.running:
                own_broker.start()


async def test_stopping_is_bounded_when_the_broker_hangs(own_broker: Broker) -> None:
    async with _at_work(own_broker.settings, new_topic()) as stop_all:
        with own_broker.frozen():
            await stop_all()


@asynccontextmanager
async def _at_work(settings: BusSettings, topic: Topic) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Consumers whose handlers never end, and a producer; yields what stops them all and checks the time."""
    await ensure_topics(settings, [topic])
    names, cancelled = Names(), Names()

    async def handle(received: Received[Any]) -> None:
        await names(received)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await cancelled(received)
            raise

    async def away(batch: list[Received[Any]]) -> None:
        raise ConnectionError("database is away")

    async def endless(batch: list[Received[Any]]) -> None:
        await handle(batch[0])

    async with producing(settings) as producer:
        consumers = [
            Consumer(settings, f"a-{topic.name}", {topic: handle}, producer, None),
            BatchConsumer(settings, f"b-{topic.name}", [topic], away, producer, None),
            BatchConsumer(settings, f"c-{topic.name}", [topic], endless, producer, None),
        ]
        tasks = [asyncio.create_task(consumer.run()) for consumer in consumers]
        await producer.send(command(topic, "x"))
        await eventually(lambda: len(names) == 2 and all(consumer.connected for consumer in consumers))

        async def stop_all() -> None:
            with pytest.raises(BusUnavailable):
                await producer.send(command(topic, "y"), timeout=0.5)
            began = time.monotonic()
            await asyncio.gather(*(consumer.stop(1.0) for consumer in consumers))
            await asyncio.gather(*tasks)
            assert time.monotonic() - began < 1.0 + FINISH_S
            began = time.monotonic()
            await producer.stop(1.0)
            assert time.monotonic() - began < 3.0
            await asyncio.sleep(0.1)
            assert asyncio.all_tasks() == {asyncio.current_task()}

        yield stop_all
    assert names.all == cancelled.all == ["x", "x"]
