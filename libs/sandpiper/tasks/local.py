"""Runs one command of a task in bubblewrap on this machine: for validating tasks without the services.

Weaker than the sandbox-executor in one way: limits are the kernel's per-process ones, so memory and
processes of the whole tree are not counted, and a tree is only bounded by its wall time. Same in the
others: no network, own namespaces, read-only system, nothing of the host, whole tree killed at the end.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandpiper.tasks.languages import RUNNERS, WORKSPACE
from sandpiper.tasks.model import Files, TaskLimits

RUNNER_FOLDER = Path(__file__).resolve().parent.parent / "runners"
SYSTEM_LINKS = ("bin", "lib", "lib32", "lib64", "sbin")
LIMITED = 'ulimit -t "$1"; ulimit -f "$2"; ulimit -c 0; shift 2; exec "$@"'


@dataclass(frozen=True)
class Execution:
    """One command in a fresh workspace."""

    argv: tuple[str, ...]
    files: Files
    limits: TaskLimits
    private_input: bytes | None = None
    """Given: the command gets the private channel with this as its input."""


@dataclass(frozen=True)
class ExecutionResult:
    """How the command ended. `exit_code` is negative for a signal, None after the wall time was up."""

    exit_code: int | None
    output: str
    channel: bytes
    seconds: float

    @property
    def timed_out(self) -> bool:
        """The wall time was up."""
        return self.exit_code is None


class LocalRunner:
    """Runs executions in bubblewrap; safe to call from several threads."""

    def __init__(self, runners: Path = RUNNER_FOLDER, bwrap: str | None = None) -> None:
        found = bwrap or shutil.which("bwrap")
        if found is None:
            raise FileNotFoundError("bubblewrap (bwrap) is not installed")
        self._bwrap, self._runners = found, runners

    def run(self, execution: Execution) -> ExecutionResult:
        """Run to the end or to the wall limit. Raises OSError where the sandbox itself cannot start."""
        with tempfile.TemporaryDirectory(prefix="sandpiper-local-") as folder:
            workspace = Path(folder)
            workspace.chmod(0o755)
            _write(workspace, execution.files)
            with _channel(execution.private_input) as (pump, fd):
                return self._run(workspace, execution, pump, fd)

    def _run(self, workspace: Path, execution: Execution, pump: _Pump, fd: int | None) -> ExecutionResult:
        started = time.monotonic()
        process = subprocess.Popen(
            self._argv(workspace, execution, fd),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=() if fd is None else (fd,),
        )
        code: int | None
        try:
            output, _ = process.communicate(timeout=execution.limits.wall_s)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)  # its death ends the namespace, and so the whole tree
            output, _ = process.communicate()
            code = None
        pump.close_remote()
        limit = execution.limits.output_kb * 1024
        text = output[:limit].decode("utf-8", "replace")
        return ExecutionResult(code, text, pump.finish(), time.monotonic() - started)

    def _argv(self, workspace: Path, execution: Execution, fd: int | None) -> list[str]:
        argv = [self._bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
        argv += ["--uid", "65534", "--gid", "65534", "--cap-drop", "ALL", "--hostname", "sandbox"]
        argv += ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
        argv += ["--size", str(execution.limits.disk_mb << 20), "--tmpfs", "/tmp"]
        for name in SYSTEM_LINKS:
            if Path("/", name).is_symlink():
                argv += ["--symlink", f"usr/{name}", f"/{name}"]
            elif Path("/", name).is_dir():
                argv += ["--ro-bind", f"/{name}", f"/{name}"]
        argv += ["--bind", str(workspace), WORKSPACE, "--chdir", WORKSPACE]
        argv += ["--ro-bind", str(self._runners), RUNNERS, "--remount-ro", "/"]
        variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": WORKSPACE, "LANG": "C.UTF-8"}
        if fd is not None:
            variables["SANDPIPER_RESULT_FD"] = str(fd)
        for name, value in variables.items():
            argv += ["--setenv", name, value]
        cpu = str(max(1, round(execution.limits.cpu_s)))
        blocks = str(execution.limits.disk_mb * 1024 * 2)
        return [*argv, "--", "/bin/sh", "-c", LIMITED, "sh", cpu, blocks, *execution.argv]


class _Pump:
    """The outer end of the private channel: writes the input, collects the output, in a thread."""

    def __init__(self, private_input: bytes) -> None:
        self._ours, self.theirs = socket.socketpair()
        self._input = len(private_input).to_bytes(4, "big") + private_input
        self._output = bytearray()
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    def close_remote(self) -> None:
        """Our copy of the command's end; the last one, once the command has ended."""
        self.theirs.close()

    def finish(self) -> bytes:
        """Everything the command wrote."""
        self._thread.join(timeout=10)
        self._ours.close()
        return bytes(self._output)

    def _pump(self) -> None:
        with contextlib.suppress(OSError):
            self._ours.sendall(self._input)
            while part := self._ours.recv(1 << 16):
                self._output += part


class _NoPump(_Pump):
    def __init__(self) -> None:
        pass

    def close_remote(self) -> None:
        pass

    def finish(self) -> bytes:
        return b""


@contextlib.contextmanager
def _channel(private_input: bytes | None) -> Iterator[tuple[_Pump, int | None]]:
    if private_input is None:
        yield _NoPump(), None
        return
    pump = _Pump(private_input)
    try:
        yield pump, pump.theirs.fileno()
    finally:
        pump.close_remote()
        pump.finish()


def _write(workspace: Path, files: Files) -> None:
    for path, text in files.items():
        target = workspace / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")
