"""Starts and ends a stack whose supervisor is a process of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sandpiper.embedded import reaper
from sandpiper.embedded.errors import StackError
from sandpiper.embedded.options import StackOptions
from sandpiper.embedded.process import tail
from sandpiper.embedded.state import DataFolder, StackState

START_WITHIN_S = 600.0
STOP_WITHIN_S = 40.0
_POLL_S = 0.05
_SHIM = Path(__file__).with_name("shim.py")
Progress = Callable[[StackState], None]


@dataclass
class Launched:
    """A stack that this process started."""

    folder: DataFolder
    first: StackState
    """As it was when it became ready; `folder.read_state()` has the present."""
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        """End the stack and reap its supervisor (idempotent, bounded)."""
        shut_down(self.folder)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5.0)

    def release(self) -> None:
        """Let it run on after this process."""
        self.process.returncode = 0  # keeps Popen from warning about a child that still runs


def launch(
    options: StackOptions,
    with_parent: bool = False,
    within_s: float = START_WITHIN_S,
    progress: Progress | None = None,
) -> Launched:
    """Start a supervisor process; return once everything is ready. `progress` sees the state meanwhile.

    `with_parent`: the supervisor gets SIGTERM when the calling thread dies.
    StackError with the reason when it does not start.
    """
    folder = DataFolder(options.data_dir)
    folder.logs.mkdir(parents=True, exist_ok=True)
    log = folder.logs / "supervisor.log"
    argv = [sys.executable, "-m", "sandpiper.embedded", options.model_dump_json()]
    if with_parent:
        shim = [sys.executable, "-I", "-S", str(_SHIM), f"--parent={os.getpid()}"]
        argv = [*shim, f"--death-signal={int(signal.SIGTERM)}", "--", *argv]
    begins = log.stat().st_size if log.exists() else 0
    with log.open("ab") as out:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        state = _await_ready(folder, process, time.monotonic() + within_s, progress)
    except BaseException:
        process.terminate()
        process.wait(STOP_WITHIN_S)
        raise
    if state is None:
        raise StackError(_reason(log, begins))
    return Launched(folder, state, process)


def _await_ready(
    folder: DataFolder, process: subprocess.Popen[bytes], ends: float, progress: Progress | None
) -> StackState | None:
    """The state once it is ready, None when the supervisor ended."""
    while time.monotonic() < ends:
        if process.poll() is not None:
            return None
        state = folder.read_state()
        if state is not None and state.supervisor_pid == process.pid:
            if progress is not None:
                progress(state)
            if state.ready:
                return state
        time.sleep(_POLL_S)
    raise StackError(f"the stack was not ready in time; see {folder.logs}")


def _reason(log: Path, begins: int) -> str:
    """The supervisor's own last message, else the end of its log."""
    with log.open("rb") as file:
        file.seek(begins)
        lines = file.read().decode(errors="replace").splitlines()
    for number, line in enumerate(lines):
        if line.startswith("sandpiper: "):
            return "\n".join(lines[number:]).removeprefix("sandpiper: ")
    return f"the supervisor ended; last lines of {log}:\n{tail(log)}"


def shut_down(folder: DataFolder, within_s: float = STOP_WITHIN_S) -> bool:
    """End the folder's stack, whatever state it is in. False when none was there."""
    state = folder.read_state()
    if state is None:
        return False
    if state.supervisor_alive:
        _signal(state, signal.SIGTERM)
        if not _gone_within(state, within_s):
            _signal(state, signal.SIGKILL)
            _gone_within(state, 5.0)
    clear(folder, state)
    return True


def clear(folder: DataFolder, state: StackState) -> None:
    """Remove what a stack without supervisor left: its processes (by mark), temporary folder, state file."""
    if not reaper.end_marked(state.token, 4.0):
        raise StackError("some processes of the stack cannot be ended")
    shutil.rmtree(state.temp_dir, ignore_errors=True)
    left = folder.read_state()
    if left is not None and left.token == state.token:
        folder.forget_state()


def _signal(state: StackState, number: signal.Signals) -> None:
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(state.supervisor_pid)
        try:
            if state.supervisor_alive:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def _gone_within(state: StackState, seconds: float) -> bool:
    ends = time.monotonic() + seconds
    while state.supervisor_alive:
        if time.monotonic() > ends:
            return False
        time.sleep(_POLL_S)
    return True
