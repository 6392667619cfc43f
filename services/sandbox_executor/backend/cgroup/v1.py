"""cgroup version 1: one folder per controller (memory, pids, cpuacct)."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from services.sandbox_executor.backend.cgroup.base import (
    Counters,
    find_folders,
    kill_members,
    read_fields,
    read_int,
)

CONTROLLERS = ("memory", "pids", "cpuacct")


class GroupV1:
    """One sandbox: a folder under each controller."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self._folders = folders
        self._cpu_user = self._cpu_system = 0
        self._oom_kills = self._pids_denied = self._pids_peak = self._pids_seen = 0
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            (folders["memory"] / "memory.swappiness").write_text("0")

    def begin(self, memory_bytes: int, pids: int) -> None:
        memory, counting = self._folders["memory"], self._folders["pids"]
        (memory / "memory.limit_in_bytes").write_text(str(memory_bytes))
        (memory / "memory.max_usage_in_bytes").write_text("0")
        _renew(counting)
        (counting / "pids.max").write_text(str(pids))
        self._cpu_user, self._cpu_system = self._cpu()
        self._oom_kills = self._oom_total()
        self._pids_denied, self._pids_peak = self._denied_total(), self._peak()
        self._pids_seen = 0

    def place(self, pid: int) -> None:
        for folder in self._folders.values():
            (folder / "cgroup.procs").write_text(str(pid))

    def counters(self) -> Counters:
        user, system = self._cpu()
        peak = self._peak()
        now = read_int(self._folders["pids"] / "pids.current")
        self._pids_seen = max(self._pids_seen, now, peak if peak > self._pids_peak else 0)
        memory = self._folders["memory"]
        return Counters(
            cpu_user_s=(user - self._cpu_user) / 1e9,
            cpu_system_s=(system - self._cpu_system) / 1e9,
            memory_peak=read_int(memory / "memory.max_usage_in_bytes"),
            memory_anon=read_fields(memory / "memory.stat").get("total_rss", 0),
            oom_kills=self._oom_total() - self._oom_kills,
            pids_peak=self._pids_seen,
            pids_denied=self._denied_total() - self._pids_denied,
        )

    def remove(self) -> None:
        for folder in self._folders.values():
            remove_group(folder)

    def _cpu(self) -> tuple[int, int]:
        folder = self._folders["cpuacct"]
        return read_int(folder / "cpuacct.usage_user"), read_int(folder / "cpuacct.usage_sys")

    def _oom_total(self) -> int:
        return read_fields(self._folders["memory"] / "memory.oom_control").get("oom_kill", 0)

    def _denied_total(self) -> int:
        return read_fields(self._folders["pids"] / "pids.events").get("max", 0)

    def _peak(self) -> int:
        path = self._folders["pids"] / "pids.peak"
        return read_int(path) if path.exists() else 0


class TreeV1:
    """`<controller mount>/<own path>/<instance>/<sandbox>` for each controller."""

    version = "cgroup-v1"

    def __init__(self, instance: str, parents: dict[str, Path], roots: Sequence[Path]) -> None:
        self._instance = instance
        self._parents = parents
        self._roots = roots

    @classmethod
    def find(cls, instance: str, mounts: str, own: str) -> TreeV1 | None:
        """From the text of /proc/mounts and /proc/self/cgroup; None when a controller is not mounted."""
        paths = {
            name: line.split(":", 2)[2]
            for line in own.splitlines()
            for name in line.split(":", 2)[1].split(",")
        }
        parents: dict[str, Path] = {}
        roots: list[Path] = []
        for line in mounts.splitlines():
            _, point, kind, options = line.split()[:4]
            for name in CONTROLLERS:
                if kind == "cgroup" and name in options.split(","):
                    mine = Path(point + paths.get(name, "/"))
                    parents[name] = mine if mine.is_dir() else Path(point)
                    roots.append(Path(point))
        return cls(instance, parents, roots) if len(parents) == len(CONTROLLERS) else None

    def usable(self) -> bool:
        try:
            group = self.create("probe")
            group.begin(64 << 20, 8)
            group.remove()
        except OSError:
            return False
        return True

    def create(self, name: str) -> GroupV1:
        return GroupV1({key: parent / self._instance / name for key, parent in self._parents.items()})

    def instances(self) -> list[str]:
        return sorted(find_folders(self._roots, self._instance))

    def clear(self, instance: str) -> int:
        return sum(clear_tree(path) for path in find_folders(self._roots, self._instance).get(instance, []))


def _renew(folder: Path) -> None:
    """Peaks never fall, so each run counts in a new folder; nothing is in the old one between runs."""
    with contextlib.suppress(OSError):
        folder.rmdir()
    folder.mkdir(exist_ok=True)


def remove_group(folder: Path, deadline_s: float = 5.0) -> None:
    """Kill the members and remove the folder; a dying process holds it for a moment."""
    until = time.monotonic() + deadline_s
    while True:
        kill_members(folder)
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.005)
        else:
            return


def clear_tree(folder: Path) -> int:
    """Remove `folder` and the groups in it; how many."""
    if not folder.is_dir():
        return 0
    children = [path for path in folder.iterdir() if path.is_dir()]
    for child in children:
        remove_group(child)
    remove_group(folder)
    return len(children) + 1
