"""The only place that constructs the parts of the learner."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

from sandpiper.bus.consumer import Consumer
from sandpiper.bus.producer import Producer
from sandpiper.clock import Clock, SystemClock
from sandpiper.service import Stack
from sandpiper.store.objects import ObjectStore
from services.learner.config import LearnerOptions, LearnerSettings
from services.learner.creation import Creation
from services.learner.events import Events, Sender
from services.learner.handlers import Handlers
from services.learner.intake import Intake
from services.learner.policy.sources import Sources
from services.learner.publisher import Publisher
from services.learner.registry import Registry
from services.learner.scheduler import Scheduler
from services.learner.scratch import Scratch
from services.learner.state.checkpoints import Checkpoints
from services.learner.state.control import Controls
from services.learner.steps import Parts, Steps
from services.learner.workshop import Workshop

NAME = "learner"


async def start(settings: LearnerSettings, stack: Stack) -> list[Coroutine[Any, Any, Any]]:
    """Connect, construct, and return what is to be supervised."""
    objects = ObjectStore(settings.objects)
    stack.on_close(objects.close)
    await objects.start()
    producer = Producer(settings.bus, objects, client_id=NAME)
    stack.on_close(producer.stop)
    await producer.start()
    folder = settings.data_dir / NAME
    scratch = await asyncio.to_thread(Scratch, folder / "scratch")
    stack.on_close(partial(asyncio.to_thread, scratch.close))
    workshop = Workshop(settings.learner)
    stack.on_close(partial(asyncio.to_thread, workshop.close))
    sources = Sources(objects, folder / "models")
    scheduler, handlers = assemble(
        settings.learner, objects, producer, scratch, workshop, sources, SystemClock()
    )
    consumer = Consumer(
        settings.bus,
        NAME,
        handlers.table(),
        producer,
        objects,
        concurrency=settings.learner.buffered_groups,
        on_assigned=handlers.assigned,
    )
    stack.on_drain(consumer.stop)
    stack.on_drain(scheduler.drain)
    stack.ready("bus", lambda: consumer.connected)
    return [consumer.run(), scheduler.run()]


def assemble(
    options: LearnerOptions,
    objects: ObjectStore,
    sender: Sender,
    scratch: Scratch,
    workshop: Workshop,
    sources: Sources,
    clock: Clock,
) -> tuple[Scheduler, Handlers]:
    """Everything between the bus and the tensors."""
    events = Events(sender)
    checkpoints, controls = Checkpoints(objects), Controls(objects)
    publisher = Publisher(objects, events, clock)
    registry = Registry(checkpoints, controls)
    parts = Parts(checkpoints, controls, publisher, events, workshop, scratch, clock, options)
    scheduler = Scheduler(registry, Steps(parts), parts)
    creation = Creation(sources, publisher, checkpoints, controls, events, registry, workshop, scratch, clock)
    return scheduler, Handlers(registry, scheduler, creation, Intake(objects), parts)
