"""cgroup version 2: one folder with every controller, where this process may delegate."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from services.sandbox_executor.backend.cgroup.base import (
    Counters,
    find_folders,
    read_fields,
    read_int,
)
from services.sandbox_executor.backend.cgroup.v1 import clear_tree, remove_group

CONTROLLERS = ("memory", "pids")


class GroupV2:
    """One sandbox, one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._base: dict[str, int] = {}
        self._memory_seen = self._pids_seen = 0
        folder.mkdir(exist_ok=True)
        with contextlib.suppress(OSError):
            (folder / "memory.swap.max").write_text("0")

    def begin(self, memory_bytes: int, pids: int) -> None:
        (self._folder / "memory.max").write_text(str(memory_bytes))
        (self._folder / "pids.max").write_text(str(pids))
        self._base = self._totals()
        self._memory_seen = self._pids_seen = 0

    def place(self, pid: int) -> None:
        (self._folder / "cgroup.procs").write_text(str(pid))

    def counters(self) -> Counters:
        now = self._totals()
        since = {key: value - self._base.get(key, 0) for key, value in now.items()}
        self._memory_seen = self._peak("memory", self._memory_seen, since)
        self._pids_seen = self._peak("pids", self._pids_seen, since)
        return Counters(
            cpu_user_s=since["user"] / 1e6,
            cpu_system_s=since["system"] / 1e6,
            memory_peak=self._memory_seen,
            memory_anon=read_fields(self._folder / "memory.stat").get("anon", 0),
            oom_kills=since["oom"],
            pids_peak=self._pids_seen,
            pids_denied=since["denied"],
        )

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            (self._folder / "cgroup.kill").write_text("1")
        remove_group(self._folder)

    def _totals(self) -> dict[str, int]:
        cpu = read_fields(self._folder / "cpu.stat")
        return {
            "user": cpu.get("user_usec", 0),
            "system": cpu.get("system_usec", 0),
            "oom": read_fields(self._folder / "memory.events").get("oom_kill", 0),
            "denied": read_fields(self._folder / "pids.events").get("max", 0),
            "memory.peak": self._optional("memory.peak"),
            "pids.peak": self._optional("pids.peak"),
        }

    def _peak(self, what: str, seen: int, since: dict[str, int]) -> int:
        """The kernel's peak never falls: it is this run's when it rose, else what was seen counts."""
        now = read_int(self._folder / f"{what}.current")
        grown = since[f"{what}.peak"] > 0
        return max(seen, now, self._base[f"{what}.peak"] + since[f"{what}.peak"] if grown else 0)

    def _optional(self, name: str) -> int:
        path = self._folder / name
        return read_int(path) if path.exists() else 0


class TreeV2:
    """`<mount>/<own path>/<instance>/<sandbox>`."""

    version = "cgroup-v2"

    def __init__(self, instance: str, parent: Path, root: Path) -> None:
        self._instance = instance
        self._parent = parent
        self._root = root

    @classmethod
    def find(cls, instance: str, mounts: str, own: str) -> TreeV2 | None:
        """From the text of /proc/mounts and /proc/self/cgroup; None without memory and pids controllers."""
        path = next((line[3:] for line in own.splitlines() if line.startswith("0::")), None)
        points = [line.split()[1] for line in mounts.splitlines() if line.split()[2] == "cgroup2"]
        for point in points if path is not None else []:
            mine = Path(f"{point}{path}")
            parent = mine if mine.is_dir() else Path(point)
            listed = parent / "cgroup.controllers"
            if listed.exists() and set(CONTROLLERS) <= set(listed.read_text().split()):
                return cls(instance, parent, Path(point))
        return None

    def usable(self) -> bool:
        try:
            self._delegate()
            group = self.create("probe")
            group.begin(64 << 20, 8)
            group.remove()
        except OSError:
            with contextlib.suppress(OSError):
                os.rmdir(self._parent / self._instance)
            return False
        return True

    def create(self, name: str) -> GroupV2:
        return GroupV2(self._parent / self._instance / name)

    def instances(self) -> list[str]:
        return sorted(find_folders([self._root], self._instance))

    def clear(self, instance: str) -> int:
        return sum(clear_tree(path) for path in find_folders([self._root], self._instance).get(instance, []))

    def _delegate(self) -> None:
        """Hand the controllers down. A group with members cannot, so they step into a leaf first, if all are
        ours.
        """
        wanted = " ".join(f"+{name}" for name in CONTROLLERS)
        try:
            (self._parent / "cgroup.subtree_control").write_text(wanted)
        except OSError:
            self._step_aside()
            (self._parent / "cgroup.subtree_control").write_text(wanted)
        home = self._parent / self._instance
        home.mkdir(exist_ok=True)
        (home / "cgroup.subtree_control").write_text(wanted)

    def _step_aside(self) -> None:
        members = [int(pid) for pid in (self._parent / "cgroup.procs").read_text().split()]
        if os.getpid() != 1 and not all(_is_ours(pid) for pid in members):
            raise PermissionError("processes of others live in this control group")
        leaf = self._parent / "executor"
        leaf.mkdir(exist_ok=True)
        for pid in members:
            (leaf / "cgroup.procs").write_text(str(pid))


def _is_ours(pid: int) -> bool:
    """Ourselves, a descendant, or the init of our container."""
    if pid == 1:
        return True
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False
