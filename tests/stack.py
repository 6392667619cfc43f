"""Fixtures for tests that need real parts: broker, Postgres and S3, with or without the services.

`tests/conftest.py` loads them; ask for `infra` (session: broker, Postgres, S3; a second or two), `objects` (a
client of its store) or `make_stack` (stacks of your own, with services, ended with the test).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandpiper.bus.settings import BusSettings
from sandpiper.embedded.launch import Launched, launch
from sandpiper.embedded.options import SERVICES, StackOptions
from sandpiper.embedded.state import DataFolder, ProcessState, StackState
from sandpiper.store.objects import ObjectSettings, ObjectStore


@dataclass
class RunningStack:
    """A stack whose supervisor is a process of its own (and dies with the test process)."""

    options: StackOptions
    launched: Launched

    @property
    def folder(self) -> DataFolder:
        return self.launched.folder

    @property
    def first(self) -> StackState:
        return self.launched.first

    @property
    def state(self) -> StackState:
        """Addresses, credentials, and the processes as they are now."""
        return self.folder.read_state() or self.first

    @property
    def bus(self) -> BusSettings:
        return BusSettings(bootstrap=self.first.bootstrap, broker="tansu")

    @property
    def objects(self) -> ObjectSettings:
        return self.first.objects

    @property
    def database_url(self) -> str:
        return self.first.database_url

    @property
    def api_url(self) -> str:
        return self.first.api_url

    def process(self, name: str) -> ProcessState:
        """A process by name (`broker`, `postgres`, `objects`, `api`, `sandbox-executor-2`, …) as it is."""
        return next(process for process in self.state.processes if process.name == name)

    def stop(self) -> None:
        """End it (idempotent)."""
        self.launched.stop()


MakeStack = Callable[..., RunningStack]


def start_stack(data_dir: Path, **options: object) -> RunningStack:
    """Start a stack on free ports; without `replicas` all six services run, with `replicas={}` none."""
    chosen = StackOptions.model_validate({"data_dir": data_dir, "api_port": 0, **options})
    return RunningStack(chosen, launch(chosen, with_parent=True))


@pytest.fixture(scope="session")
def infra() -> Iterator[RunningStack]:
    """Broker, Postgres (migrated) and S3 for the whole session. Use ids of your own: others share it."""
    data_dir = Path(tempfile.mkdtemp(prefix="sandpiper-test-"))
    try:
        stack = start_stack(data_dir, replicas={})
        yield stack
        stack.stop()
    finally:
        shutil.rmtree(data_dir, ignore_errors=True)


@pytest.fixture
def make_stack(tmp_path: Path) -> Iterator[MakeStack]:
    """`make_stack(replicas={"sandbox-executor": 2}, engine="torch", env={...})`: stacks for one test.

    `replicas` overrides the default of one process for each service (0 leaves one out).
    """
    running: list[RunningStack] = []

    def make(
        replicas: dict[str, int] | None = None, data_dir: Path | None = None, **options: object
    ) -> RunningStack:
        counts = dict.fromkeys(SERVICES, 1) | (replicas or {})
        stack = start_stack(data_dir or tmp_path / f"stack-{len(running)}", replicas=counts, **options)
        running.append(stack)
        return stack

    try:
        yield make
    finally:
        for stack in reversed(running):
            stack.stop()


@pytest.fixture
async def objects(infra: RunningStack) -> AsyncIterator[ObjectStore]:
    """A client of the shared object store."""
    store = ObjectStore(infra.objects)
    await store.start()
    yield store
    await store.close()
