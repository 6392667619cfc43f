"""The backends that the conformance suite and the hostile programs run on, and what they must leave behind:
nothing.

To let another backend join, add a maker here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import sandpiper.runners
from services.sandbox_executor.backend.bubblewrap.backend import BubblewrapBackend
from services.sandbox_executor.backend.bubblewrap.settings import BubblewrapSettings
from services.sandbox_executor.backend.protocol import Limits, RunEvidence, RunSpec, Sandbox

RUNNERS = Path(sandpiper.runners.__file__ or "").parent
LIMITS = Limits(
    wall_s=10,
    cpu_s=5,
    memory_bytes=128 << 20,
    pids=32,
    disk_bytes=16 << 20,
    output_bytes=8 << 10,
    file_bytes=16 << 20,
    output_hard_bytes=4 << 20,
    max_files=2000,
)
Maker = Callable[[Path], BubblewrapBackend]


def _bubblewrap(folder: Path) -> BubblewrapBackend:
    return BubblewrapBackend(BubblewrapSettings(), RUNNERS, folder)


def _bubblewrap_rlimits(folder: Path) -> BubblewrapBackend:
    return BubblewrapBackend(BubblewrapSettings(cgroup="off"), RUNNERS, folder)


BACKENDS: dict[str, Maker] = {"bubblewrap": _bubblewrap, "bubblewrap-rlimits": _bubblewrap_rlimits}


def limits(**changes: object) -> Limits:
    """LIMITS with some other."""
    return replace(LIMITS, **changes)  # type: ignore[arg-type]


async def shell(sandbox: Sandbox, script: str, **changes: object) -> RunEvidence:
    """Run a shell script."""
    return await sandbox.run(RunSpec(["/bin/sh", "-c", script], limits(**changes)))


async def python(sandbox: Sandbox, program: str, *argv: str, **changes: object) -> RunEvidence:
    """Run a Python program."""
    return await sandbox.run(RunSpec(["/usr/bin/python3", "-c", program, *argv], limits(**changes)))


def processes_of(instance: str) -> list[int]:
    """Pids of every process of the instance's sandboxes: marked ones, and all that share their pid
    namespaces.
    """
    marked = [pid for pid in _pids() if instance in _cmdline(pid)]
    spaces = {_namespace(pid) for pid in marked} - {_namespace(os.getpid()), None}
    return sorted({*marked, *(pid for pid in _pids() if spaces and _namespace(pid) in spaces)})


def uids_of(instance: str) -> list[int]:
    """Host uids (real, effective, saved) of the instance's processes."""
    found: set[int] = set()
    for pid in processes_of(instance):
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            found |= {int(uid) for line in lines if line.startswith("Uid:") for uid in line.split()[1:]}
    return sorted(found)


def groups_of(instance: str) -> list[Path]:
    """Control groups of the instance."""
    found = []
    for root in Path("/sys/fs/cgroup").glob("*"):
        for path, folders, _ in os.walk(root):
            found += [Path(path, name) for name in folders if name == instance]
    return found


def mounts() -> Sequence[str]:
    """The host's mounts."""
    return sorted(Path("/proc/self/mountinfo").read_text().splitlines())


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _cmdline(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _namespace(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None
