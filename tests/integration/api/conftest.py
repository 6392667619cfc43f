"""An api app over a real Postgres and a real object store. The tests write the rows that it reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from sandpiper.clock import SystemClock
from sandpiper.store.db.engine import Sessions, make_engine, make_sessions
from sandpiper.store.objects import ObjectStore
from services.api.app import create_app
from services.api.idempotency import Replays
from services.api.services import Services
from tests.stack import RunningStack
from tests.unit.api.api_fakes import make_services


@pytest.fixture
async def sessions(infra: RunningStack) -> AsyncIterator[Sessions]:
    """Read and write, for the test itself."""
    engine = make_engine(infra.database_url)
    yield make_sessions(engine)
    await engine.dispose()


@pytest.fixture
async def services(infra: RunningStack, objects: ObjectStore, tmp_path: Path) -> AsyncIterator[Services]:
    """As `wiring` makes them: the app's own connections are read-only."""
    engine = make_engine(infra.database_url)
    readonly = make_sessions(engine.execution_options(postgresql_readonly=True))
    made = make_services(readonly, tmp_path / "uploads")
    replays = Replays(objects, SystemClock(), 3600.0, 5.0)
    yield replace(made, objects=objects, replays=replays, clock=SystemClock())
    await engine.dispose()


@pytest.fixture
async def client(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(services), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=30) as made:
        yield made
