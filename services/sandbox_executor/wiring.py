"""Constructs the sandbox executor: the only place here that connects anything."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Coroutine
from typing import Any

import structlog

from sandpiper.bus.consumer import Consumer, TopicPartition
from sandpiper.bus.producer import Producer
from sandpiper.clock import SystemClock
from sandpiper.service import Stack
from sandpiper.store.objects import ObjectStore
from sandpiper.store.results import ResultStore
from sandpiper.topics import SANDBOX_COMMANDS
from sandpiper.v1.sandbox_pb2 import ExecutorHeartbeat
from services.sandbox_executor.archives import Archives
from services.sandbox_executor.backend.bubblewrap.backend import BubblewrapBackend
from services.sandbox_executor.backend.bubblewrap.system import reachable_folder
from services.sandbox_executor.backend.protocol import Backend
from services.sandbox_executor.config import ExecutorSettings
from services.sandbox_executor.executor import Executor
from services.sandbox_executor.handlers import CommandHandler
from services.sandbox_executor.heartbeats import Heartbeats
from services.sandbox_executor.leases import Leases

NAME = "sandbox-executor"
SWEEP_S = 5.0

log = structlog.get_logger(__name__)


async def start(settings: ExecutorSettings, stack: Stack) -> list[Coroutine[Any, Any, None]]:
    """Prove the sandbox, connect, wire; returns what runs until the service stops."""
    clock = SystemClock()
    executor_id = settings.executor_id or f"executor-{socket.gethostname()}-{secrets.token_hex(3)}"
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    backend = make_backend(settings)
    stack.on_close(backend.stop)
    await backend.start()
    log.info("executor.proven", backend=backend.name, isolation=list(backend.isolation))

    objects = ObjectStore(settings.objects)
    stack.on_close(objects.close)
    await objects.start()
    producer = Producer(settings.bus, objects, client_id=executor_id)
    stack.on_close(producer.stop)
    await producer.start()

    leases = Leases(backend, clock, settings.lease_s, settings.max_sandboxes)
    stack.on_close(leases.close)
    executor = Executor(
        leases, Archives(objects, settings.cache_bytes), objects, clock, settings.ceilings, settings.slots
    )
    identity = ExecutorHeartbeat(
        executor_id=executor_id,
        labels=settings.labels,
        images=backend.languages,
        isolation=" ".join(backend.isolation),
        backend=backend.name,
    )
    heartbeats = Heartbeats(
        producer, clock, identity, executor.load, lambda: leases.live, settings.data_dir, settings.heartbeat_s
    )
    consumer = _consumer(settings, producer, objects, executor, heartbeats, executor_id)

    async def drain(seconds: float) -> None:
        heartbeats.drain()
        await consumer.stop(max(0.1, seconds - 1))

    stack.on_drain(drain)
    stack.ready("bus", lambda: consumer.connected)
    return [consumer.run(), heartbeats.run(), _sweep(leases), _reap(backend, settings.reap_every_s)]


def make_backend(settings: ExecutorSettings) -> BubblewrapBackend:
    """The backend of the settings."""
    folder = reachable_folder(settings.data_dir / NAME)
    return BubblewrapBackend(settings.bubblewrap, settings.runners, folder)


def _consumer(
    settings: ExecutorSettings,
    producer: Producer,
    objects: ObjectStore,
    executor: Executor,
    heartbeats: Heartbeats,
    executor_id: str,
) -> Consumer:
    owned: set[int] = set()

    def assigned(partitions: frozenset[TopicPartition]) -> None:
        owned.update(partition.partition for partition in partitions)
        heartbeats.owns(owned)

    def revoked(partitions: frozenset[TopicPartition]) -> None:
        owned.difference_update(partition.partition for partition in partitions)
        heartbeats.owns(owned)

    handler = CommandHandler(executor, ResultStore(objects, NAME), producer, SystemClock(), executor_id)
    return Consumer(
        settings.bus,
        NAME,
        {SANDBOX_COMMANDS: handler},
        producer,
        objects,
        concurrency=2 * settings.slots,
        on_assigned=assigned,
        on_revoked=revoked,
        client_id=executor_id,
    )


async def _sweep(leases: Leases) -> None:
    while True:
        await asyncio.sleep(SWEEP_S)
        await leases.sweep()


async def _reap(backend: Backend, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        found = await backend.reap()
        if found:
            log.warning("executor.reaped", leftovers=found)
