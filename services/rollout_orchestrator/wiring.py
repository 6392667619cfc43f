"""Constructs the orchestrator: the only place here that connects anything."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from sandpiper.bus.batch import BatchConsumer
from sandpiper.bus.message import Received
from sandpiper.bus.outbox import OutboxRelay
from sandpiper.bus.producer import Producer
from sandpiper.clock import SystemClock
from sandpiper.placement import Placement
from sandpiper.service import Stack
from sandpiper.store.db.engine import make_engine, make_sessions
from sandpiper.store.objects import ObjectStore
from sandpiper.topics import EXECUTOR_HEARTBEATS, TASKS_SUBMITTED

from .config import OrchestratorSettings
from .handlers import CONSUMER, CONTROL, RESULTS, Handlers
from .sweeper import Sweeper


async def start(settings: OrchestratorSettings, stack: Stack) -> list[Coroutine[Any, Any, None]]:
    """Connect, wire and return what runs until the service stops."""
    clock = SystemClock()
    engine = make_engine(settings.database_url, pool_size=10)
    stack.on_close(engine.dispose)
    sessions = make_sessions(engine)
    objects = ObjectStore(settings.objects)
    await objects.start()
    stack.on_close(objects.close)
    producer = Producer(settings.bus, objects)
    await producer.start()
    stack.on_close(producer.stop)

    placement = Placement(clock, stale_after_s=settings.executor_stale_s)
    relay = OutboxRelay(sessions, producer, placement, clock)

    def committed() -> None:
        relay.wake()
        sweeper.wake()

    handlers = Handlers(sessions, objects, clock, committed)
    sweeper = Sweeper(handlers.work, relay, clock, settings.sweep_s, settings.resend_s)

    async def heartbeats(batch: list[Received[Any]]) -> None:
        for received in batch:
            placement.observe(received.message)
        relay.wake()

    results = BatchConsumer(
        settings.bus, CONSUMER, RESULTS, handlers.results, producer, objects, max_batch=settings.batch
    )
    control = BatchConsumer(
        settings.bus, f"{CONSUMER}-control", [*CONTROL, TASKS_SUBMITTED], handlers.control, producer, objects
    )
    beats = BatchConsumer(
        settings.bus, None, [EXECUTOR_HEARTBEATS], heartbeats, producer, objects, broadcast=True
    )
    for consumer in (results, control, beats):
        stack.on_drain(consumer.stop)
    stack.ready("bus", lambda: results.connected and control.connected)
    return [results.run(), control.run(), beats.run(), relay.run(), sweeper.run()]
