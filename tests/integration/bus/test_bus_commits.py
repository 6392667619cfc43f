"""Nothing is lost and little repeated when consumers are full, killed, or come and go."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from typing import Any

from sandpiper.bus.admin import ensure_topics
from sandpiper.bus.backoff import Backoff
from sandpiper.bus.batch import BatchConsumer
from sandpiper.bus.consumer import Consumer
from sandpiper.bus.errors import Reject, Retry
from sandpiper.bus.message import Received
from tests.integration.brokers import Broker, new_topic
from tests.integration.bus.helpers import Names, command, consuming, dead_letters, eventually, producing

# Handles all messages but the one called `stuck`, which it never ends.
WORKER = """
import asyncio, sys
from sandpiper.bus.consumer import Consumer
from sandpiper.bus.producer import Producer
from sandpiper.bus.settings import BusSettings
from sandpiper.topics import Topic
from sandpiper.v1.run_pb2 import RunCommand

async def handle(received):
    if received.message.run_id == "stuck":
        await asyncio.sleep(3600)
    print(received.message.run_id, flush=True)

async def main(settings, topic, group):
    settings = BusSettings.model_validate_json(settings)
    topic = Topic(topic, RunCommand, ("test",), "test", 1, 3_600_000)
    await Consumer(settings, group, {topic: handle}, Producer(settings, None), None).run()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_after_a_kill_only_what_was_not_contiguously_done_comes_again(broker: Broker) -> None:
    topic = new_topic(partitions=1)
    await ensure_topics(broker.settings, [topic])
    group = f"g-{topic.name}"
    sent = ["a", "b", "stuck", "c", "d"]
    async with producing(broker.settings) as producer:
        for name in sent:
            await producer.send(command(topic, name))
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WORKER, broker.settings.model_dump_json(), topic.name, group,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            assert worker.stdout is not None
            done = [(await asyncio.wait_for(worker.stdout.readline(), 60)).decode().strip() for _ in range(4)]
            assert sorted(done) == ["a", "b", "c", "d"]
            await asyncio.sleep(1.0)  # several commit intervals
        finally:
            worker.send_signal(signal.SIGKILL)
            await worker.wait()
        names = Names()
        async with consuming(Consumer(broker.settings, group, {topic: names}, producer, None)):
            await eventually(lambda: len(names) >= 3)
            await asyncio.sleep(0.3)
    assert sorted(names.all) == ["c", "d", "stuck"]


async def test_a_full_consumer_pauses_keeps_its_membership_and_goes_on(broker: Broker) -> None:
    topic = new_topic(partitions=2)
    await ensure_topics(broker.settings, [topic])
    gate = asyncio.Event()
    names, most = Names(), 0

    async def handle(received: Received[Any]) -> None:
        nonlocal most
        most = max(most, consumer.in_hand)
        await gate.wait()
        await names(received)

    assigned: list[int] = []
    async with producing(broker.settings) as producer:
        for number in range(30):
            await producer.send(command(topic, f"m{number}"))
        consumer = Consumer(
            broker.settings,
            f"g-{topic.name}",
            {topic: handle},
            producer,
            None,
            concurrency=3,
            on_assigned=lambda partitions: assigned.append(len(partitions)),
        )
        async with consuming(consumer):
            await eventually(lambda: consumer.in_hand == 3)
            # Longer than the session timeout: heartbeats go on while nothing can be taken.
            await asyncio.sleep(broker.settings.session_ms / 1000 + 1.0)
            session = consumer._session
            assert session is not None
            assert session.paused == session.partitions == consumer.partitions != frozenset()
            assert (consumer.in_hand, len(names)) == (3, 0)
            gate.set()
            await eventually(lambda: len(names) >= 30)
            await eventually(lambda: not session.paused)
    assert sorted(names.all) == sorted(f"m{number}" for number in range(30))
    assert most == 3
    assert assigned == [2]


async def test_rebalances_lose_nothing(broker: Broker) -> None:
    topic = new_topic(partitions=4)
    await ensure_topics(broker.settings, [topic])
    group = f"g-{topic.name}"
    names = Names()

    async def handle(received: Received[Any]) -> None:
        await asyncio.sleep(0.02)
        await names(received)

    async with producing(broker.settings) as producer:
        sent: list[str] = []

        async def send_on(seconds: float) -> None:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                sent.append(f"m{len(sent)}")
                await producer.send(command(topic, sent[-1]))
                await asyncio.sleep(0.01)

        def member() -> Consumer:
            return Consumer(broker.settings, group, {topic: handle}, producer, None, concurrency=4)

        first, second = member(), member()
        async with consuming(first):
            await eventually(lambda: len(first.partitions) == 4)
            async with consuming(second):
                sending = asyncio.create_task(send_on(6.0))
                await eventually(lambda: len(first.partitions) == len(second.partitions) == 2)
                assert not first.partitions & second.partitions
                await sending
            await asyncio.gather(send_on(1.0), eventually(lambda: len(first.partitions) == 4))
            await eventually(lambda: set(names.all) == set(sent))
    repeated = len(names) - len(set(names.all))
    assert repeated <= 8  # what was in hand at the two rebalances, at most
    assert len(sent) > 30


async def test_batches_wait_out_an_outage_and_give_up_only_the_poison(broker: Broker) -> None:
    topic = new_topic(partitions=2)
    await ensure_topics(broker.settings, [topic])
    group = f"g-{topic.name}"
    outages, done, sizes = 0, Names(), []

    async def handle(batch: list[Received[Any]]) -> None:
        nonlocal outages
        sizes.append(len(batch))
        if outages < 7:
            outages += 1
            raise Retry("database is away")
        for received in batch:
            if received.message.run_id == "poison":
                raise ZeroDivisionError
            if received.message.run_id == "unwanted":
                raise Reject("handler_error", "unwanted")
        for received in batch:
            await done(received)

    async with producing(broker.settings) as producer:
        for name in ("a", "poison", "b", "unwanted", "c"):
            await producer.send(command(topic, name))
        await producer.send_encoded(topic, "k", None, b"\xff", command(topic, "x").encode()[1])
        consumer = BatchConsumer(
            broker.settings, group, [topic], handle, producer, None, max_tries=2, backoff=Backoff(0.01, 0.02)
        )
        async with consuming(consumer):
            await eventually(lambda: len(done) >= 3)
            letters = await dead_letters(broker.settings, topic, 3)
        again = Names()

        async def keep(batch: list[Received[Any]]) -> None:
            for received in batch:
                await again(received)

        await producer.send(command(topic, "last"))
        async with consuming(BatchConsumer(broker.settings, group, [topic], keep, producer, None)):
            await eventually(lambda: len(again) > 0)
    assert sorted(done.all) == ["a", "b", "c"]
    assert outages == 7
    assert max(sizes) > 1
    assert sorted(letter.reason for letter in letters) == ["handler_error", "handler_error", "unparseable"]
    assert again.all == ["last"]
