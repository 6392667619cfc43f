"""Finds and ends what belongs to a stack, by a mark in the environment. Standard library only.

Run as a script it is the guardian of one stack: it outlives a killed supervisor just long enough to clear up.

Invariants:
* a process is ended only if its environment holds the stack's random mark, checked through a pidfd so that a
  reused pid is never hit;
* the guardian ends by itself: when told that all is done, or when nothing marked is left.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

MARK = "EMBEDDED_STACK_MARK"
"""Environment variable `<stack token>/<child>`; children of children inherit it."""

DONE = b"done"
_POLL_S = 0.05


def start_ticks(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot: with the pid, an identity. None when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def _mark_of(pid: int) -> str:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return ""
    wanted = f"{MARK}=".encode()
    for entry in environment.split(b"\0"):
        if entry.startswith(wanted):
            return entry[len(wanted) :].decode(errors="replace")
    return ""


def _belongs(pid: int, token: str, child: str | None) -> bool:
    mark = _mark_of(pid)
    return mark == f"{token}/{child}" if child else mark.startswith(f"{token}/")


def marked(token: str, child: str | None = None) -> Iterator[int]:
    """Pids of a stack's living processes, or of one child and what it started."""
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid() and _belongs(int(name), token, child):
            yield int(name)


def signal_marked(token: str, number: int, child: str | None = None) -> int:
    """Signal them all; returns how many there were."""
    count = 0
    for pid in marked(token, child):
        try:
            handle = os.pidfd_open(pid)
        except OSError:
            continue
        try:
            if _belongs(pid, token, child):
                signal.pidfd_send_signal(handle, number)
                count += 1
        except OSError:
            pass
        finally:
            os.close(handle)
    return count


def end_marked(token: str, grace_s: float, child: str | None = None, bound_s: float = 10.0) -> bool:
    """SIGTERM, `grace_s` to end, then SIGKILL until none is left (True) or `bound_s` passes (False)."""
    if grace_s > 0:
        signal_marked(token, signal.SIGTERM, child)
        graceful = time.monotonic() + grace_s
        while any(marked(token, child)) and time.monotonic() < graceful:
            time.sleep(_POLL_S)
    ends = time.monotonic() + bound_s
    while signal_marked(token, signal.SIGKILL, child):
        if time.monotonic() > ends:
            return False
        time.sleep(_POLL_S)
    return True


def guard(token: str, folder: Path, state: Path, grace_s: float) -> None:
    """Wait for the supervisor to say `done` or to vanish; then clear up after it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read() == DONE:
        return
    if end_marked(token, grace_s):
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            state.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description="Clears up after a supervisor that was killed.")
    parser.add_argument("token")
    parser.add_argument("folder", type=Path, help="temporary folder of the stack, removed at the end")
    parser.add_argument("state", type=Path, help="state file of the stack, removed at the end")
    parser.add_argument("--grace", type=float, default=4.0, metavar="SECONDS")
    arguments = parser.parse_args()
    guard(arguments.token, arguments.folder, arguments.state, arguments.grace)


if __name__ == "__main__":
    main()
