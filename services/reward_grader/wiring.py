"""Constructs the reward grader: the only place here that connects anything."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import sandpiper
from sandpiper.bus.consumer import Consumer, Handler
from sandpiper.bus.producer import Producer
from sandpiper.clock import SystemClock
from sandpiper.placement import Placement
from sandpiper.service import Stack
from sandpiper.store.objects import ObjectStore
from sandpiper.store.results import ResultStore
from sandpiper.tasks import plan
from sandpiper.tasks.local import RUNNER_FOLDER
from sandpiper.topics import EXECUTOR_HEARTBEATS, GRADING_REQUESTS, SANDBOX_RESULTS_GRADER, Topic
from services.reward_grader.config import GraderSettings
from services.reward_grader.handlers import Grader
from services.reward_grader.tasks import Tasks

NAME = "reward-grader"


async def start(settings: GraderSettings, stack: Stack) -> list[Coroutine[Any, Any, None]]:
    """Connect, wire and return what runs until the service stops."""
    clock = SystemClock()
    objects = ObjectStore(settings.objects)
    stack.on_close(objects.close)
    await objects.start()
    producer = Producer(settings.bus, objects, client_id=NAME)
    stack.on_close(producer.stop)
    await producer.start()
    grader = Grader(
        tasks=Tasks(objects, settings.task_cache),
        objects=objects,
        stored=ResultStore(objects, NAME),
        producer=producer,
        placement=Placement(clock, settings.executor_stale_s),
        clock=clock,
        nonce_key=settings.nonce_key(),
        version=await asyncio.to_thread(version),
    )
    consumers = _consumers(settings, grader, producer, objects)
    for consumer in consumers:
        stack.on_drain(consumer.stop)
    stack.ready("bus", lambda: all(consumer.connected for consumer in consumers))
    return [consumer.run() for consumer in consumers]


def _consumers(
    settings: GraderSettings, grader: Grader, producer: Producer, objects: ObjectStore
) -> list[Consumer]:
    """Requests and results apart, so that requests that wait for an executor never hold up results."""
    halves: dict[str, dict[Topic, Handler]] = {
        NAME: {GRADING_REQUESTS: grader.requested},
        f"{NAME}-results": {SANDBOX_RESULTS_GRADER: grader.executed},
    }
    working = [
        Consumer(settings.bus, group, handlers, producer, objects, concurrency=settings.concurrency)
        for group, handlers in halves.items()
    ]
    return [
        *working,
        Consumer(
            settings.bus,
            None,
            {EXECUTOR_HEARTBEATS: grader.heartbeat},
            producer,
            objects,
            broadcast=True,
            client_id=f"{NAME}-heartbeats",
        ),
    ]


def version(folder: Path = RUNNER_FOLDER) -> str:
    """Release and digest of everything that decides a verdict: runners, evidence, reward."""
    digest = hashlib.sha256()
    here = Path(__file__).resolve().parent
    own = [here / "evidence.py", here / "reward.py", Path(plan.__file__)]
    for path in sorted([*folder.glob("*.py"), *folder.glob("*.cjs"), *own]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return f"{sandpiper.__version__}+{digest.hexdigest()[:12]}"
