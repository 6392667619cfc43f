"""Starting and ending the processes of a sandbox (blocking; runs in the backend's own threads).

Invariants: the parent-death signal of bubblewrap follows the *thread* that started it, so one thread that
lives as long as the backend starts them all; a process is only ever signalled through its pidfd, so a reused
pid is never hit.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from services.sandbox_executor.backend.bubblewrap.argv import Descriptors
from services.sandbox_executor.backend.protocol import CreateFailed

BuildArgv = Callable[[Descriptors], list[str]]


@dataclass(frozen=True)
class Spawned:
    """A started sandbox: bubblewrap, and the supervisor that is pid 1 of the namespace."""

    bwrap: subprocess.Popen[bytes]
    pid: int
    """Pid of the supervisor on the host."""
    pidfd: int

    def end(self, timeout_s: float = 10.0) -> None:
        """Kill the namespace, wait until every process of it is gone. Raises TimeoutError if one is not."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        poller = select.poll()
        poller.register(self.pidfd, select.POLLIN)
        if not poller.poll(timeout_s * 1000):
            raise TimeoutError(f"sandbox process {self.pid} outlived SIGKILL by {timeout_s:.0f} s")
        os.close(self.pidfd)
        self.bwrap.kill()  # it only waited for the supervisor
        self.bwrap.wait()
        if self.bwrap.stderr:
            self.bwrap.stderr.close()


def spawn(
    build: BuildArgv, seccomp: bytes | None, uid: int | None, timeout_s: float
) -> tuple[Spawned, socket.socket]:
    """Start bubblewrap as host user `uid` (None: as we are). It, and our end of the control socket."""
    ours, theirs = socket.socketpair()
    info, info_write = os.pipe()
    program = _memfd(seccomp) if seccomp else None
    inherited = [fd for fd in (theirs.fileno(), info_write, program) if fd is not None]
    try:
        bwrap = _popen(build(Descriptors(theirs.fileno(), info_write, program)), inherited, uid)
        os.close(info_write)
        inherited.remove(info_write)
        return _supervisor_of(bwrap, info, timeout_s), ours
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
        os.close(info)
        for fd in inherited[1:]:
            os.close(fd)


def _popen(argv: list[str], inherited: list[int], uid: int | None) -> subprocess.Popen[bytes]:
    null = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            argv,
            stdin=null,
            stdout=null,
            stderr=subprocess.PIPE,
            pass_fds=inherited,
            env={},
            cwd="/",
            user=uid,
            group=uid,
            extra_groups=None if uid is None else [],
        )
    except OSError as error:
        raise CreateFailed("spawn_failed", str(error)) from error


def _supervisor_of(bwrap: subprocess.Popen[bytes], info: int, timeout_s: float) -> Spawned:
    poller = select.poll()
    poller.register(info, select.POLLIN)
    text = b""
    while poller.poll(timeout_s * 1000):
        part = os.read(info, 4096)
        text += part
        if not part:
            break
    with contextlib.suppress(ValueError, ProcessLookupError):
        pid = int(json.loads(text)["child-pid"])
        return Spawned(bwrap, pid, os.pidfd_open(pid))
    bwrap.kill()
    raise CreateFailed("bubblewrap_failed", complaint(bwrap))


def complaint(bwrap: subprocess.Popen[bytes]) -> str:
    """What a bubblewrap that is about to end, or ended, said last; reaps it."""
    try:
        _, said = bwrap.communicate(timeout=5)
    except (subprocess.TimeoutExpired, ValueError):
        return f"bubblewrap (pid {bwrap.pid}) does not end"
    return said.decode("utf-8", "replace").strip()[-500:] or f"bubblewrap ended with {bwrap.returncode}"


def _memfd(data: bytes) -> int:
    fd = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def only_child(pid: int) -> int:
    """The host pid of the one child that a supervisor has while its program waits at the gate."""
    with open(f"/proc/{pid}/task/{pid}/children") as listing:
        children = listing.read().split()
    if len(children) != 1:
        raise ProcessLookupError(f"{len(children)} children where there must be one")
    return int(children[0])
