"""A backend without processes, an object store in memory, a clock that stands still, a producer that
remembers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sandpiper.bus.message import Outgoing
from sandpiper.store.errors import MissingObject, StoreUnavailable
from sandpiper.v1.common_pb2 import Blob
from services.sandbox_executor.backend.protocol import (
    FileSpec,
    RunEvidence,
    RunSpec,
    SandboxError,
    SandboxLost,
    SandboxSpec,
)
from tests.unit.sandbox_executor.test_outcome import CLEAN


@dataclass
class FakeClock:
    now: float = 1000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


@dataclass
class FakeSandbox:
    """Its workspace is a set of paths; its snapshot spells them out."""

    spec: SandboxSpec
    backend: FakeBackend
    files: list[str] = field(default_factory=list)
    alive: bool = True

    async def write(self, files: Sequence[FileSpec]) -> None:
        self.backend.fail("write")
        self.files += [file.path for file in files]

    async def restore(self, archive: bytes, keep: Sequence[str] = (), *, clear: bool = False) -> None:
        self.backend.fail("restore")
        names = archive.decode().split(",")
        self.files += [name for name in names if not keep or name in keep]

    async def run(self, spec: RunSpec) -> RunEvidence:
        self.backend.runs.append(spec)
        self.backend.fail("run")
        if self.backend.on_run is not None:
            await self.backend.on_run()
        return self.backend.evidence

    async def snapshot(self, max_bytes: int, max_files: int) -> bytes:
        self.backend.fail("snapshot")
        return ",".join(self.files).encode()

    async def destroy(self) -> None:
        self.alive = False
        self.backend.destroyed.append(self.spec.sandbox_id)


@dataclass
class FakeBackend:
    name: str = "fake"
    isolation: Sequence[str] = ()
    evidence: RunEvidence = CLEAN
    made: list[FakeSandbox] = field(default_factory=list)
    destroyed: list[str] = field(default_factory=list)
    runs: list[RunSpec] = field(default_factory=list)
    failures: dict[str, list[SandboxError]] = field(default_factory=dict)
    """Step -> what goes wrong the next times."""
    on_run: Callable[[], Any] | None = None

    def fail(self, step: str) -> None:
        if self.failures.get(step):
            error = self.failures[step].pop(0)
            if isinstance(error, SandboxLost):
                self.made[-1].alive = False
            raise error

    async def start(self) -> None: ...

    async def create(self, spec: SandboxSpec) -> FakeSandbox:
        self.fail("create")
        self.made.append(FakeSandbox(spec, self))
        return self.made[-1]

    async def reap(self) -> int:
        return 0

    async def stop(self) -> None: ...


class FakeObjects:
    """The part of ObjectStore that the executor uses."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.away = False
        self.order: list[str] = []

    def uri(self, key: str) -> str:
        return f"s3://bucket/{key}"

    async def put(self, key: str, data: bytes) -> Blob:
        self._check()
        self.data[key] = data
        self.order.append(f"put {key}")
        return Blob(uri=self.uri(key), sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))

    async def put_by_digest(self, prefix: str, data: bytes, suffix: str = "") -> Blob:
        return await self.put(f"{prefix}/{hashlib.sha256(data).hexdigest()}{suffix}", data)

    async def get(self, blob: Blob) -> bytes:
        self._check()
        key = blob.uri.removeprefix("s3://bucket/")
        if key not in self.data:
            raise MissingObject(key)
        return self.data[key]

    async def read(self, key: str) -> bytes | None:
        self._check()
        return self.data.get(key)

    def _check(self) -> None:
        if self.away:
            raise StoreUnavailable("away")


class FakeProducer:
    def __init__(self, order: list[str] | None = None) -> None:
        self.sent: list[Outgoing] = []
        self._order = order

    async def send(self, out: Outgoing, *, timeout: float | None = None) -> None:
        self.sent.append(out)
        if self._order is not None:
            self._order.append(f"send {out.topic.name}")
