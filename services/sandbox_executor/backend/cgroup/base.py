"""The interface of both cgroup versions.

Invariants: a group holds the program and its descendants, never the supervisor; counters of a run are
differences from its begin, so that what an earlier run did is never charged to a later one. All calls touch
kernel files and belong in a thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Counters:
    """Kernel counters of one group, since its last `begin`."""

    cpu_user_s: float
    cpu_system_s: float
    memory_peak: int
    memory_anon: int
    """Anonymous memory now."""
    oom_kills: int
    pids_peak: int
    pids_denied: int
    """Forks that the process limit refused."""


class Group(Protocol):
    """The group of one sandbox."""

    def begin(self, memory_bytes: int, pids: int) -> None:
        """Set the limits of a run and start counting."""

    def place(self, pid: int) -> None: ...
    def counters(self) -> Counters: ...
    def remove(self) -> None:
        """Kill what is in it and remove it."""


class GroupTree(Protocol):
    """The groups of one executor."""

    version: str

    def usable(self) -> bool:
        """Whether a group can really be made, limited and removed here."""

    def create(self, name: str) -> Group: ...
    def instances(self) -> list[str]:
        """Names of all executors' trees in the hierarchy."""

    def clear(self, instance: str) -> int:
        """Kill and remove the whole tree of a dead executor; how many groups."""


def read_int(path: Path) -> int:
    """The number in a kernel file; `max` reads as -1."""
    text = path.read_text().strip()
    return -1 if text == "max" else int(text)


def read_fields(path: Path) -> dict[str, int]:
    """`name value` lines of a kernel file."""
    pairs = (line.split() for line in path.read_text().splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def kill_members(group: Path) -> None:
    """SIGKILL to every process of the group."""
    with contextlib.suppress(FileNotFoundError):
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), 9)


def find_folders(roots: Iterable[Path], own: str, depth: int = 6) -> dict[str, list[Path]]:
    """Instance -> its folders, anywhere in the hierarchies: an executor may have lived in another group.

    Instances share the part of their names before the first hyphen with `own`.
    """
    prefix = own.split("-", 1)[0] + "-"
    found: dict[str, list[Path]] = {}
    for root in roots:
        for path, names, _ in os.walk(root):
            for name in [name for name in names if name.startswith(prefix)]:
                found.setdefault(name, []).append(Path(path, name))
                names.remove(name)
            if len(Path(path).relative_to(root).parts) >= depth:
                names.clear()
    return found
