"""The only place that constructs the parts of the inference service."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any

from sandpiper.bus.consumer import Consumer
from sandpiper.bus.producer import Producer
from sandpiper.clock import SystemClock
from sandpiper.service import Stack
from sandpiper.store.objects import ObjectStore
from sandpiper.store.results import ResultStore
from services.inference.config import InferenceSettings
from services.inference.engines.choose import Engines
from services.inference.handlers import Handlers
from services.inference.policies.cache import PolicyCache
from services.inference.policies.loader import Loader
from services.inference.policies.registry import Registry
from services.inference.policies.scheduler import Scheduler
from services.inference.turns import Turns

NAME = "inference"


async def start(settings: InferenceSettings, stack: Stack) -> list[Coroutine[Any, Any, Any]]:
    """Connect, construct, and return what is to be supervised."""
    clock = SystemClock()
    objects = ObjectStore(settings.objects)
    stack.on_close(objects.close)
    await objects.start()
    producer = Producer(settings.bus, objects, client_id=NAME)
    stack.on_close(producer.stop)
    await producer.start()
    scheduler = await _scheduler(settings, stack, objects, clock)
    turns = Turns(scheduler, objects, clock)
    results = ResultStore(objects, NAME)
    handlers = Handlers(turns, scheduler, results, producer, clock, settings.turn_s)
    requests = Consumer(
        settings.bus, NAME, handlers.requests(), producer, objects, concurrency=settings.queue
    )
    policies = Consumer(
        settings.bus,
        None,
        handlers.broadcasts(),
        producer,
        objects,
        client_id=f"{NAME}-policies",
        broadcast=True,
        from_beginning=True,
    )
    for consumer in (policies, requests):
        stack.on_drain(consumer.stop)
        stack.ready(f"bus {consumer.name}", partial(getattr, consumer, "connected"))
    return [requests.run(), policies.run(), scheduler.run()]


async def _scheduler(
    settings: InferenceSettings, stack: Stack, objects: ObjectStore, clock: SystemClock
) -> Scheduler:
    cache = PolicyCache(objects, settings.data_dir / NAME / "policies", settings.policy_cache)
    await cache.start()
    stack.on_close(cache.close)
    loader = Loader(Engines(settings))
    stack.on_close(loader.close)
    return Scheduler(loader, cache, Registry(), clock, settings.max_batch, settings.switch_after_s)
