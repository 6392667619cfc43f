"""The API keeps to its OpenAPI document: schemathesis calls every operation with generated requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi import checks

from services.api.app import create_app
from services.api.intake.rundocs import YAML_TYPES
from services.api.intake.tasksets import ARCHIVE_TYPES, JSONL_TYPES
from services.api.settings import HttpSettings
from tests.unit.api.api_fakes import (
    FakeOrchestrator,
    episode_row,
    group_row,
    make_database,
    make_services,
    run_row,
)

EXAMPLES = 8
# Bodies are files and documents that refer to what exists (a schema cannot say so), and keys are off here.
EXCLUDED = [checks.positive_data_acceptance, checks.ignored_auth]
KNOWN = {"run_id": "run-1", "episode_id": "ep-1"}


@schemathesis.serializer(*JSONL_TYPES, *ARCHIVE_TYPES, *YAML_TYPES)
def _as_it_is(context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


class Server:
    """The app over fakes, in a thread with a loop of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self.url = ""

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(30)

    def stop(self) -> None:
        self.server.should_exit = True
        self._thread.join(30)

    async def _serve(self) -> None:
        engine, sessions = await make_database(self._folder)
        limits = HttpSettings(materialise_s=0.05, heartbeat_s=0.05)
        services = make_services(sessions, self._folder, limits)
        assert isinstance(services.publisher, FakeOrchestrator)
        async with sessions.begin() as session:
            # Over, so that its event stream ends.
            run = run_row("run-1", {"tasks": {"task_set": "ts-1"}}, 1.0, state="succeeded", started_at=1.0)
            session.add_all([run, group_row("g-1", "run-1", 0, 1.0)])
            session.add(episode_row("ep-1", "run-1", "g-1", 0, 1.0))
        config = uvicorn.Config(
            create_app(services), port=0, log_config=None, access_log=False, lifespan="off", ws="none"
        )
        self.server = uvicorn.Server(config)
        task = asyncio.create_task(self.server.serve())
        while not self.server.started:
            await asyncio.sleep(0.01)
        self.url = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"
        self._ready.set()
        await task
        await engine.dispose()


@pytest.fixture(scope="module")
def api_schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    server = Server(tmp_path_factory.mktemp("uploads"))
    server.start()
    yield schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    server.stop()


def test_every_operation_keeps_to_the_document(api_schema: Any) -> None:
    checked = 0
    for result in api_schema.get_all_operations():
        operation = result.ok()
        _check(operation)
        checked += 1
    assert checked >= 20


def _check(operation: Any) -> None:
    @given(case=operation.as_strategy())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )
    def check(case: Any) -> None:
        # Half of the calls are about something that exists.
        for name, known in KNOWN.items():
            if name in case.path_parameters and len(str(case.path_parameters[name])) % 2:
                case.path_parameters[name] = known
        case.call_and_validate(excluded_checks=EXCLUDED)

    check()
