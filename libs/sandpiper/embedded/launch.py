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


def launch(
    options: StackOptions,
    with_parent: bool = False,
    within_s: float = START_WITHIN_S,
    progress: Callable[[StackState], None] | None = None,
) -> StackState:
    """Start a supervisor process and return the state once everything is ready.

    `with_parent`: the supervisor gets SIGTERM when the calling thread dies, so that tests leave nothing.
    StackError with the reason when it does not start.
    """
    folder = DataFolder(options.data_dir)
    folder.logs.mkdir(parents=True, exist_ok=True)
    log = folder.logs / "supervisor.log"
    argv = [sys.executable, "-m", "sandpiper.embedded", options.model_dump_json()]
    if with_parent:
        shim = [sys.executable, "-I", "-S", str(_SHIM), f"--parent={os.getpid()}"]
        argv = [*shim, f"--death-signal={int(signal.SIGTERM)}", "--", *argv]
    with log.open("wb") as out:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    return _await_ready(folder, process, log, time.monotonic() + within_s, progress)


def _await_ready(
    folder: DataFolder,
    process: subprocess.Popen[bytes],
    log: Path,
    ends: float,
    progress: Callable[[StackState], None] | None,
) -> StackState:
    while time.monotonic() < ends:
        if process.poll() is not None:
            raise StackError(_reason(log))
        state = folder.read_state()
        if state is not None and state.supervisor_pid == process.pid:
            if progress is not None:
                progress(state)
            if state.ready:
                # Not ours to wait for any more: it lives on after us.
                process.returncode = 0
                return state
        time.sleep(_POLL_S)
    process.terminate()
    raise StackError(f"the stack was not ready in time; see {log}")


def _reason(log: Path) -> str:
    """The supervisor's own last message, else the end of its log."""
    lines = tail(log, 60).splitlines()
    for number, line in enumerate(lines):
        if line.startswith("sandpiper: "):
            return "\n".join(lines[number:]).removeprefix("sandpiper: ")
    return f"the supervisor ended; last lines of {log}:\n" + "\n".join(lines[-20:])


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
