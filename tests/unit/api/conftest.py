"""An api over fakes, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from sandpiper.store.db.engine import Sessions
from services.api.services import Services
from tests.unit.api.api_fakes import (
    FakeOrchestrator,
    MemoryObjects,
    client_of,
    jsonl,
    make_database,
    make_services,
    task_data,
)


@pytest.fixture
async def sessions(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Sessions]:
    engine, made = await make_database(tmp_path_factory.mktemp("db"))
    yield made
    await engine.dispose()


@pytest.fixture
def services(sessions: Sessions, tmp_path: Path) -> Services:
    return make_services(sessions, tmp_path / "uploads")


@pytest.fixture
def objects(services: Services) -> MemoryObjects:
    return cast(MemoryObjects, services.objects)


@pytest.fixture
def orchestrator(services: Services) -> FakeOrchestrator:
    return cast(FakeOrchestrator, services.publisher)


@pytest.fixture
async def client(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(services) as made:
        yield made


@pytest.fixture
async def task_set(client: httpx.AsyncClient) -> dict[str, Any]:
    """A task set with four tasks, two of each split."""
    tasks = [task_data(number, split="train" if number < 3 else "heldout") for number in range(1, 5)]
    answer = await client.post(
        "/v1/task-sets?name=adding", content=jsonl(*tasks), headers={"content-type": "application/x-ndjson"}
    )
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


@pytest.fixture
async def run(client: httpx.AsyncClient, task_set: dict[str, Any]) -> dict[str, Any]:
    """A run on that task set."""
    answer = await client.post("/v1/runs", json={"name": "first", "tasks": {"task_set": "adding"}})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made
