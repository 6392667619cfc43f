"""Frames (4-byte length + bytes) between the trusted side and a candidate's process.

Invariants of `Child`: no call outlives its deadline, whatever the candidate does with its ends of the pipes;
a frame above the codec's limit is a protocol error; `kill` ends the candidate's whole process group.
"""

from __future__ import annotations

import os
import resource
import select
import sys
import time

from sandpiper.runners.codec import MAX_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SIGKILL, SIGXCPU = 9, 24
IGNORED = (1, 2, 3, 10, 12, 13, 14, 15)
"""HUP, INT, QUIT, USR1, USR2, PIPE, ALRM, TERM: ignored by the trusted side, default in candidates."""
READABLE = select.POLLIN | select.POLLHUP | select.POLLERR
WRITABLE = select.POLLOUT | select.POLLERR


class Died(Exception):
    """The candidate's process ended, or broke the protocol, where an answer was due."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """Wait status of the fork that ended, where it is one."""


class Late(Exception):
    """No answer before the deadline."""


class Child:
    """One candidate process, started fresh by exec: it inherits two pipe ends and nothing else."""

    def __init__(self, argv: list[str], env: dict[str, str], cpu_s: float) -> None:
        """`cpu_s`: what the process, and each fork of it by itself, may use (rounded up to a second)."""
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        for fd in (theirs_in, theirs_out):
            os.set_inheritable(fd, True)
        null = (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)
        try:
            self.pid = _spawn([*argv, str(theirs_in), str(theirs_out)], env, null, cpu_s)
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(self._out, False)
        os.set_blocking(self._in, False)
        self._end = _pidfd(self.pid)
        self._data = b""

    def send(self, frame: bytes, deadline: float) -> None:
        """Write one frame. Raises `Late` or `Died`."""
        view = memoryview(len(frame).to_bytes(4, "big") + frame)
        while view:
            try:
                view = view[os.write(self._out, view) :]
            except BlockingIOError:
                self._wait(self._out, WRITABLE, deadline)
            except OSError:
                raise Died("it closed its input") from None

    def receive(self, deadline: float) -> bytes:
        """Read one frame. Raises `Late` or `Died`."""
        size = int.from_bytes(self._exactly(4, deadline), "big")
        if size > MAX_BYTES:
            raise Died(f"it sent {size} bytes at once")
        return self._exactly(size, deadline)

    def kill(self) -> int:
        """End the process group, close the pipes; the wait status."""
        for target in (-self.pid, self.pid):
            _signal_process(target)
        for fd in (self._in, self._out, self._end):
            if fd >= 0:
                os.close(fd)
        return os.waitpid(self.pid, 0)[1]

    def cpu_s(self) -> float:
        """CPU time of the process and of its ended children."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            return 0.0
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def _exactly(self, size: int, deadline: float) -> bytes:
        while len(self._data) < size:
            try:
                part = os.read(self._in, 1 << 16)
            except BlockingIOError:
                self._wait(self._in, READABLE, deadline)
                continue
            if not part:
                raise Died("it ended")
            self._data += part
        taken, self._data = self._data[:size], self._data[size:]
        return taken

    def _wait(self, fd: int, event: int, deadline: float) -> None:
        """Wait until `fd` is ready. The process's own end counts too: a grandchild may hold the pipe open."""
        poll = select.poll()
        poll.register(fd, event)
        if self._end >= 0:
            poll.register(self._end, select.POLLIN)
        left = deadline - time.monotonic()
        ready = dict(poll.poll(max(0, int(left * 1000)))) if left > 0 else {}
        if not ready:
            raise Late
        if fd not in ready:
            raise Died("it ended")


def python_argv(script: str) -> list[str]:
    """Argv of a fresh interpreter with this one's isolation."""
    flags = ["-I", "-B"] + (["-S"] if sys.flags.no_site else [])
    return [sys.executable, *flags, script]


def _spawn(argv: list[str], env: dict[str, str], null: tuple[Any, ...], cpu_s: float) -> int:
    """Start a process. It inherits its CPU limit: a sandbox may forbid to set that of another process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = max(1, int(cpu_s + 0.999))
    resource.setrlimit(resource.RLIMIT_CPU, (wanted if hard < 0 else min(wanted, hard), hard))
    try:
        return os.posix_spawn(argv[0], argv, env, file_actions=[null], setpgroup=0, setsigdef=IGNORED)
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _signal_process(target: int) -> None:
    try:
        os.kill(target, SIGKILL)
    except OSError:  # it, or its group, is gone already
        return


def _pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def exit_text(status: int) -> str:
    """A wait status in words."""
    if os.WIFSIGNALED(status):
        return f"killed by signal {os.WTERMSIG(status)}"
    return f"exit status {os.WEXITSTATUS(status)}"
