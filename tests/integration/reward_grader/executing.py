"""Gradings through the executor's own code and a real backend, without broker or object store."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import sandpiper.runners
from sandpiper.clock import SystemClock
from sandpiper.ids import new_id
from sandpiper.tasks.archive import write_archive
from sandpiper.tasks.model import Files, Task
from sandpiper.v1.common_pb2 import EpisodeRef
from sandpiper.v1.grading_pb2 import GradeEpisode
from services.reward_grader.evidence import Evidence, Subject, gather
from services.reward_grader.requests import Context, grading_command, nonce
from services.sandbox_executor.archives import Archives
from services.sandbox_executor.backend.bubblewrap.backend import BubblewrapBackend
from services.sandbox_executor.backend.bubblewrap.settings import BubblewrapSettings
from services.sandbox_executor.config import Ceilings
from services.sandbox_executor.executor import Executor
from services.sandbox_executor.leases import Leases
from tests.unit.reward_grader.grading_parts import MemoryObjects

KEY = b"integration"


class Bench:
    """Grades workspaces in real sandboxes, as the two services would."""

    def __init__(self, executor: Executor, objects: MemoryObjects) -> None:
        self._executor, self._objects = executor, objects

    async def grade(self, task: Task, workspace: Files | None) -> Evidence:
        """Evidence for a final workspace; None: the policy never wrote anything."""
        request_id = new_id("req")
        request = GradeEpisode(ref=EpisodeRef(episode_id="ep", attempt=1), request_id=request_id)
        if workspace is not None:
            archive = write_archive({path: text.encode() for path, text in workspace.items()})
            request.snapshot.CopyFrom(await self._objects.put_by_digest("snapshots", archive))
        command = grading_command(task, Context(request, 0.0), KEY)
        result = await self._executor.execute(command, SystemClock().time())
        subject = Subject(task, "", request_id, "ep", 1, request.snapshot.sha256, "test")
        return gather(subject, result, nonce(KEY, request_id))


@asynccontextmanager
async def bench(slots: int = 2, cgroup: str = "auto") -> AsyncIterator[Bench]:
    """A started backend with an executor over it; ends clean."""
    folder = Path(tempfile.mkdtemp(prefix="sandpiper-grading-"))
    folder.chmod(0o755)
    runners = Path(sandpiper.runners.__file__ or "").parent
    settings: Any = BubblewrapSettings.model_validate({"cgroup": cgroup})
    backend = BubblewrapBackend(settings, runners, folder)
    objects: Any = MemoryObjects()
    try:
        await backend.start()
        leases = Leases(backend, SystemClock(), 600.0, 64)
        executor = Executor(leases, Archives(objects, 1 << 20), objects, SystemClock(), Ceilings(), slots)
        yield Bench(executor, objects)
        await leases.close()
    finally:
        await backend.stop()
        shutil.rmtree(folder, ignore_errors=True)
