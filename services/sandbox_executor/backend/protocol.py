"""What a sandbox backend offers. Every backend passes the same conformance suite (tests/integration).

Words: `create` gives an empty workspace; `write` and `restore` fill it; `run` executes one program under
limits and returns evidence, not a verdict; `snapshot` gives the workspace as a deterministic tar; `destroy`
is legal from every state and idempotent. One sandbox serves one call at a time; the caller sees to that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Stop = Literal["", "wall", "cpu", "output", "files", "memory", "pids"]
"""Which limit ended a run; empty when the program ended by itself."""


class SandboxError(Exception):
    """The sandbox, not the program, failed. `reason` is one machine-readable word."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class CreateFailed(SandboxError):
    """No sandbox came to be."""


class SandboxLost(SandboxError):
    """The sandbox ended under a call; only `destroy` is left."""


class Refused(SandboxError):
    """The sandbox lives and refuses this request (`bad_path`, `bad_archive`, `no_space`, `too_big`, …)."""


@dataclass(frozen=True)
class Limits:
    """Bounds of one run. All positive; seconds and bytes."""

    wall_s: float
    cpu_s: float
    memory_bytes: int
    pids: int
    disk_bytes: int
    output_bytes: int
    """Kept of stdout and of stderr each."""
    file_bytes: int
    output_hard_bytes: int
    """Of both together; more ends the run."""
    max_files: int
    """Inodes of the workspace and the scratch folders together."""


@dataclass(frozen=True)
class FileSpec:
    """A file to write, relative to the workspace. `mode` 0 means 0644."""

    path: str
    content: bytes
    mode: int = 0


@dataclass(frozen=True)
class RunSpec:
    """One program run."""

    argv: Sequence[str]
    limits: Limits
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    private_channel: bool = False
    private_input: bytes = b""


@dataclass(frozen=True)
class RunEvidence:
    """What was seen of a run. `source` tells who counted: `cgroup-v1`, `cgroup-v2` or `rusage`."""

    exit_code: int
    signal: int
    stop: Stop
    wall_s: float
    cpu_user_s: float
    cpu_system_s: float
    memory_peak_bytes: int
    pids_peak: int
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int
    stdout_cut: bool
    stderr_cut: bool
    channel: bytes
    disk_bytes: int
    disk_full: bool
    disk_seen_full: bool
    file_at_limit: bool
    killed: int
    """Processes that were alive when the main process had ended."""
    oom_kills: int
    pids_denied: int
    source: str


@dataclass(frozen=True)
class SandboxSpec:
    """What a sandbox is created with; the rest may change from run to run."""

    sandbox_id: str
    disk_bytes: int


class Sandbox(Protocol):
    """One live workspace."""

    spec: SandboxSpec

    @property
    def alive(self) -> bool: ...
    async def write(self, files: Sequence[FileSpec]) -> None: ...
    async def restore(self, archive: bytes, keep: Sequence[str] = (), *, clear: bool = False) -> None: ...
    async def run(self, spec: RunSpec) -> RunEvidence: ...
    async def snapshot(self, max_bytes: int, max_files: int) -> bytes: ...
    async def destroy(self) -> None: ...


class Backend(Protocol):
    """Makes sandboxes and answers for what they isolate."""

    name: str

    @property
    def isolation(self) -> Sequence[str]: ...
    async def start(self) -> None:
        """Clear leftovers of dead executors and prove that a sandbox works. Raises CreateFailed."""

    async def create(self, spec: SandboxSpec) -> Sandbox: ...
    async def reap(self) -> int:
        """Remove what dead executors left; how many things."""

    async def stop(self) -> None:
        """Destroy every sandbox and free what the backend holds."""
