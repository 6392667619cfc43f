"""Fixtures of the sandbox tests: one backend per module, one sandbox per test."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from services.sandbox_executor.backend.bubblewrap.backend import BubblewrapBackend
from services.sandbox_executor.backend.protocol import Sandbox, SandboxSpec
from tests.integration.sandbox_executor.backends import BACKENDS, LIMITS, groups_of, mounts, processes_of

_serial = itertools.count()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=sorted(BACKENDS))
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[BubblewrapBackend]:
    """A started backend; when it stops nothing of it may be left."""
    folder = Path(tempfile.mkdtemp(prefix="sandpiper-backend-"))
    folder.chmod(0o755)
    before = mounts()
    backend = BACKENDS[request.param](folder)
    try:
        await backend.start()
        yield backend
    finally:
        await backend.stop()
        left = (processes_of(backend.instance), groups_of(backend.instance), folder.exists())
        shutil.rmtree(folder, ignore_errors=True)
    assert left == ([], [], False)
    assert mounts() == before


@pytest_asyncio.fixture(loop_scope="module")
async def sandbox(backend: BubblewrapBackend) -> AsyncIterator[Sandbox]:
    """A fresh sandbox."""
    sandbox = await backend.create(SandboxSpec(f"test-{next(_serial)}", LIMITS.disk_bytes))
    yield sandbox
    await sandbox.destroy()
