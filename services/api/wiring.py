"""Constructs the api: the only place here that connects anything."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from sqlalchemy import select

from sandpiper.bus.consumer import Consumer
from sandpiper.bus.errors import BusUnavailable
from sandpiper.bus.producer import Producer
from sandpiper.clock import SystemClock
from sandpiper.service import Stack
from sandpiper.store.db.engine import Sessions, make_engine, make_sessions
from sandpiper.store.db.models import Run
from sandpiper.store.errors import StoreError
from sandpiper.store.objects import ObjectStore
from sandpiper.topics import EPISODE_EVENTS, EXECUTOR_HEARTBEATS
from services.api.app import create_app
from services.api.config import ApiSettings
from services.api.idempotency import Replays
from services.api.intake.spool import Spooler
from services.api.live.executors import ExecutorRegistry
from services.api.live.feed import Feed
from services.api.live.hub import Hub
from services.api.server import HttpServer
from services.api.services import Check, Services

NAME = "api"
SWEEP_S = 3600.0
UNTRACED = "healthz,readyz,metrics,/events"

log = structlog.get_logger()


async def start(settings: ApiSettings, stack: Stack) -> list[Coroutine[Any, Any, None]]:
    """Connect, wire and return what runs until the service stops."""
    http, clock = settings.http, SystemClock()
    engine = make_engine(settings.database_url, pool_size=10)
    stack.on_close(engine.dispose)
    sessions = make_sessions(engine.execution_options(postgresql_readonly=True))
    objects = ObjectStore(settings.objects)
    await objects.start()
    stack.on_close(objects.close)
    producer = Producer(settings.bus, objects, client_id=NAME)
    await producer.start()
    stack.on_close(producer.stop)

    hub = Hub(http.event_clients, http.event_queue, http.event_history)
    feed, executors = Feed(hub, sessions, http.poll_s), ExecutorRegistry(clock)
    consumer = Consumer(
        settings.bus,
        None,
        {EPISODE_EVENTS: feed.on_episode, EXECUTOR_HEARTBEATS: executors.on_heartbeat},
        producer,
        objects,
        client_id=NAME,
        keep_order=True,
        broadcast=True,
    )
    stack.on_drain(consumer.stop)
    services = Services(
        settings=http,
        keys=http.key_ring(),
        sessions=sessions,
        objects=objects,
        publisher=producer,
        replays=Replays(objects, clock, http.idempotency_ttl_s, http.idempotency_wait_s),
        spooler=Spooler(http.uploads, settings.data_dir / "uploads"),
        hub=hub,
        executors=executors,
        checks=_checks(sessions, objects, consumer),
        clock=clock,
        downloads=asyncio.Semaphore(http.downloads),
    )
    server = _serve(services, stack)
    return [consumer.run(), feed.poll_forever(), _sweep_forever(services.replays), server.run()]


def _serve(services: Services, stack: Stack) -> HttpServer:
    app = create_app(services)
    FastAPIInstrumentor.instrument_app(app, excluded_urls=UNTRACED, exclude_spans=["receive", "send"])
    server = HttpServer(app, services.hub, services.settings.host, services.settings.port)
    stack.on_drain(server.stop)
    stack.ready("http", lambda: server.started)
    for name, check in services.checks.items():
        stack.ready(name, _as_bool(check))
    return server


def _checks(sessions: Sessions, objects: ObjectStore, consumer: Consumer) -> dict[str, Check]:
    async def postgres() -> None:
        async with sessions() as session:
            await session.execute(select(Run.id).limit(1))

    async def broker() -> None:
        if not consumer.connected:
            raise BusUnavailable("not connected")

    async def store() -> None:
        await objects.exists("health/none")

    return {"postgres": postgres, "broker": broker, "objects": store}


def _as_bool(check: Check) -> Any:
    async def passes() -> bool:
        await check()
        return True

    return passes


async def _sweep_forever(replays: Replays) -> None:
    """Forget old `Idempotency-Key` answers."""
    while True:
        await asyncio.sleep(SWEEP_S)
        try:
            await replays.sweep()
        except StoreError as error:
            log.warning("idempotency_sweep_failed", error=str(error))
