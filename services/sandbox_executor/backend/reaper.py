"""Leftovers of executors that died without cleaning: processes, control groups, folders.

An instance name says who owns it: pid namespace, pid and start time of the executor. What belongs to a live
executor, or to one in another pid namespace (of which we cannot tell), is left alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
from pathlib import Path

import structlog

from services.sandbox_executor.backend.cgroup import GroupTree

log = structlog.get_logger(__name__)

_NAME = re.compile(r"sandpiper-(\d+)-(\d+)-(\d+)-[0-9a-f]+")


def instance_name() -> str:
    """A name for a backend of this process that tells a later reaper whether its owner is alive."""
    pid = os.getpid()
    return f"sandpiper-{_pid_namespace()}-{pid}-{_start_time(pid)}-{secrets.token_hex(3)}"


def owner_is_dead(instance: str) -> bool:
    """Whether the executor that `instance` names is surely gone."""
    match = _NAME.fullmatch(instance)
    if match is None or int(match[1]) != _pid_namespace():
        return False
    return _start_time(int(match[2])) != int(match[3])


def reap(own: str, tree: GroupTree | None, folder: Path) -> int:
    """Kill and remove what dead executors left (blocking); how many things. `own` is never touched."""
    count = sum(
        _kill(pid) for pid, instance in _marked_processes() if instance != own and owner_is_dead(instance)
    )
    for instance in tree.instances() if tree else []:
        if instance != own and owner_is_dead(instance):
            count += _clear(tree, instance) if tree else 0
    for path in folder.glob("sandpiper-*"):
        if path.name != own and owner_is_dead(path.name):
            shutil.rmtree(path, ignore_errors=True)
            count += 1
    return count


def _clear(tree: GroupTree, instance: str) -> int:
    """Leftovers that hold out, or that another executor is removing now, wait for the next look."""
    try:
        return tree.clear(instance)
    except OSError as error:
        log.warning("leftover_groups_remain", instance=instance, error=str(error))
        return 0


def _marked_processes() -> list[tuple[int, str]]:
    """Processes of sandboxes: the marker is the last argument of bubblewrap and of the supervisor."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (path / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            instance = words[-1].split(b"/")[0].decode("ascii", "replace")
            if len(words) > 4 and _NAME.fullmatch(instance):
                found.append((int(path.name), instance))
    return found


def _kill(pid: int) -> int:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
        return 1
    return 0


def _pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _start_time(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return -1
