"""Tasks, sandbox results and an in-memory object store for the grader's tests."""

from __future__ import annotations

import hashlib
from typing import Any

from sandpiper.runners import codec
from sandpiper.store.errors import MissingObject
from sandpiper.tasks.model import Task
from sandpiper.v1.common_pb2 import Blob, EpisodeRef
from sandpiper.v1.grading_pb2 import GradeEpisode
from sandpiper.v1.sandbox_pb2 import OUTCOME_OK, SandboxResult
from services.reward_grader.evidence import Subject
from services.reward_grader.requests import nonce

KEY = b"key"
REQUEST = "grade-request-1"
NONCE = nonce(KEY, REQUEST)
HIDDEN = "def test_a(): pass\ndef test_b(): pass\ndef test_c(): pass\ndef test_d(): pass\n"


def make_task(**changes: Any) -> Task:
    """A task with four hidden tests."""
    data: dict[str, Any] = {
        "id": "t",
        "family": "t",
        "language": "python",
        "instruction": "x",
        "workspace": {"helper.py": "y = 1\n"},
        "solution_path": "solution.py",
        "visible": {"runner": "asserts", "files": {"test_visible.py": "def test(): pass\n"}},
        "hidden": {"runner": "asserts", "files": {"test_hidden.py": HIDDEN}},
        "reference": {"solution.py": "x = 1\n"},
    }
    return Task.model_validate(data | changes)


def make_subject(task: Task | None = None) -> Subject:
    """What is graded."""
    return Subject(task or make_task(), "a" * 64, REQUEST, "ep-1", 1, "b" * 64, "test")


def report(*kinds: str, missing: tuple[str, ...] = (), nonce: str = NONCE) -> bytes:
    """The runner's report: one kind per test, `ok` for a pass."""
    statuses = {"ok": "passed", "assertion": "failed", "timeout": "failed", "missing": "missing"}
    tests = [
        {
            "id": f"test_hidden.py::test_{'abcd'[index]}",
            "status": statuses.get(kind, "error"),
            "kind": "" if kind in ("ok", "missing") else kind,
            "message": "",
            "seconds": 0.1,
        }
        for index, kind in enumerate(kinds)
    ]
    return codec.encode({"nonce": nonce, "tests": tests, "missing": list(missing)})


def result(channel: bytes = b"", outcome: Any = OUTCOME_OK, **fields: Any) -> SandboxResult:
    """A sandbox result."""
    return SandboxResult(outcome=outcome, channel=channel, **fields)


def request(task_blob: Blob, **fields: Any) -> GradeEpisode:
    """A grading request of attempt 1."""
    data: dict[str, Any] = {"request_id": REQUEST, "deadline": 2000.0} | fields
    return GradeEpisode(ref=EpisodeRef(run_id="r", episode_id="ep-1", attempt=1), task=task_blob, **data)


class MemoryObjects:
    """The object store's interface, as far as the grader uses it."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}

    async def put(self, key: str, data: bytes) -> Blob:
        self.data[key] = data
        return Blob(uri=f"s3://b/{key}", sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))

    async def put_by_digest(self, prefix: str, data: bytes, suffix: str = "") -> Blob:
        return await self.put(f"{prefix}/{hashlib.sha256(data).hexdigest()}{suffix}", data)

    async def get(self, blob: Blob) -> bytes:
        key = blob.uri.removeprefix("s3://b/")
        if key not in self.data:
            raise MissingObject(key)
        return self.data[key]

    async def read(self, key: str) -> bytes | None:
        return self.data.get(key)
