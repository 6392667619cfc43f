"""A migrated database of its own for each test."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import asyncpg
import pytest
from sqlalchemy.engine import make_url

from sandpiper.embedded.postgres import ADMIN
from sandpiper.store.db.engine import Sessions, make_engine, make_sessions
from sandpiper.store.db.migrate import upgrade
from tests.stack import RunningStack


@pytest.fixture
async def database_url(infra: RunningStack) -> AsyncIterator[str]:
    """URL of a new, empty, migrated database."""
    url = make_url(infra.database_url).set(username=ADMIN, password=infra.folder.secrets().postgres_admin)
    name = f"test_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(
        host=url.host, port=url.port, user=url.username, password=url.password, database="postgres"
    )
    await admin.execute(f"create database {name}")
    fresh = url.set(database=name).render_as_string(hide_password=False)
    upgrade(fresh)
    yield fresh
    await admin.execute(f"drop database {name} with (force)")
    await admin.close()


@pytest.fixture
async def sessions(database_url: str) -> AsyncIterator[Sessions]:
    """Sessions on it."""
    engine = make_engine(database_url)
    yield make_sessions(engine)
    await engine.dispose()
