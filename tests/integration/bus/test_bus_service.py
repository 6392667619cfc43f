"""A whole service on a broker, in a process of its own (uvloop): it drains on SIGTERM and loses nothing."""

from __future__ import annotations

import asyncio
import os
import sys
import time

from sandpiper.bus.admin import ensure_topics
from sandpiper.bus.consumer import Consumer
from tests.integration.brokers import Broker, new_topic
from tests.integration.bus.helpers import Names, command, consuming, eventually, producing

PROGRAM = """
import asyncio, sys
from functools import partial
from sandpiper.bus.consumer import Consumer
from sandpiper.bus.producer import Producer
from sandpiper.service import ServiceSettings, run
from sandpiper.topics import Topic
from sandpiper.v1.run_pb2 import RunCommand

topic = Topic(sys.argv[1], RunCommand, ("test",), "test", 1, 3_600_000)

async def handle(received):
    name = received.message.run_id
    print("began", name, flush=True)
    await asyncio.sleep({"short": 2.0, "long": 3600.0}.get(name, 0.0))
    print("ended", name, flush=True)

async def start(settings, stack):
    producer = Producer(settings.bus, None)
    stack.on_close(producer.stop)
    await producer.start()
    consumer = Consumer(settings.bus, sys.argv[1], {topic: handle}, producer, None)
    stack.on_drain(consumer.stop)
    return [consumer.run()]

run("probe", ServiceSettings, lambda settings: partial(start, settings))
"""


async def test_a_service_ends_what_it_can_on_a_signal_and_leaves_the_rest(broker: Broker) -> None:
    settings = broker.settings
    topic = new_topic(partitions=1)
    await ensure_topics(settings, [topic])
    env = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SANDPIPER_DRAIN_S": "4",
        "SANDPIPER_BUS__BOOTSTRAP": settings.bootstrap,
        "SANDPIPER_BUS__BROKER": settings.broker,
        "SANDPIPER_BUS__SESSION_TIMEOUT_MS": str(settings.session_ms),
    }
    async with producing(settings) as producer:
        for name in ("quick", "short", "long", "last"):
            await producer.send(command(topic, name))
        service = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, topic.name, env=env, stdout=asyncio.subprocess.PIPE
        )
        try:
            assert service.stdout is not None
            said: list[str] = []
            while len([line for line in said if line.startswith("began")]) < 4:
                said.append((await asyncio.wait_for(service.stdout.readline(), 60)).decode().strip())
            began = time.monotonic()
            service.terminate()
            rest, _ = await asyncio.wait_for(service.communicate(), 30)
            took = time.monotonic() - began
        finally:
            if service.returncode is None:
                service.kill()
                await service.wait()
        said += rest.decode().splitlines()
        assert service.returncode == 0
        assert {line for line in said if line.startswith("ended")} == {
            "ended quick",
            "ended short",
            "ended last",
        }
        assert 3.0 < took < 20.0
        names = Names()
        async with consuming(Consumer(settings, topic.name, {topic: names}, producer, None)):
            await eventually(lambda: len(names) >= 2)
            await asyncio.sleep(0.3)
    assert names.all == ["long", "last"]  # contiguous: `last` was done, but `long` before it was not
