"""Processes of the namespace: reaping, killing, and counting where the host has no control group."""

from __future__ import annotations

import os
import time

KILL_DEADLINE_S = 10.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Unkillable(Exception):
    """A process outlived SIGKILL; only the end of the namespace can help."""


class Reaper:
    """Collects every dead process and what it used; pid 1 inherits all orphans."""

    def __init__(self) -> None:
        self.cpu_user = 0.0
        self.cpu_system = 0.0
        self.max_rss = 0
        self.statuses: dict[int, int] = {}

    def reap(self) -> bool:
        """Take all that are dead now. False when no child is left at all."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.cpu_user += usage.ru_utime
            self.cpu_system += usage.ru_stime
            self.max_rss = max(self.max_rss, usage.ru_maxrss * 1024)
            self.statuses[pid] = status

    def kill_all(self) -> int:
        """Kill everything but ourselves; returns when nothing is left. How many were killed here."""
        before = len(self.statuses)
        deadline = time.monotonic() + KILL_DEADLINE_S
        while self.reap() or _kill_everyone():
            _kill_everyone()
            if time.monotonic() > deadline:
                raise Unkillable
            time.sleep(0.0005)
        return len(self.statuses) - before


def _kill_everyone() -> bool:
    try:
        os.kill(-1, 9)
    except ProcessLookupError:
        return False
    return True


class Census:
    """Totals over all living processes but pid 1: CPU seconds, anonymous and shared memory, threads."""

    __slots__ = ("cpu", "memory", "threads")

    def __init__(self) -> None:
        self.cpu, self.memory, self.threads = 0.0, 0, 0
        for name in os.listdir("/proc"):
            if name.isdigit() and name != "1":
                self._add(f"/proc/{name}")

    def _add(self, folder: str) -> None:
        try:
            fields = _read(folder + "/stat").rpartition(b")")[2].split()
            status = _read(folder + "/status")
        except OSError:
            return  # it ended meanwhile
        self.cpu += sum(int(field) for field in fields[11:15]) / _TICKS
        self.threads += int(fields[17])
        self.memory += _kib(status, b"RssAnon:") + _kib(status, b"RssShmem:")


def _kib(status: bytes, name: bytes) -> int:
    """A size from /proc/<pid>/status in bytes; 0 for a process that has none any more."""
    _, found, rest = status.partition(name)
    return int(rest.split(None, 1)[0]) * 1024 if found else 0


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)
