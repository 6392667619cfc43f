"""One child process: own session, own log file, ended with everything it started.

Invariants:
* the child dies with the thread that started it (kernel signal), its own children by mark;
* `stop` returns within `grace_s` plus a second, and then nothing of the child is left.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sandpiper.embedded import reaper

_SHIM = Path(__file__).with_name("shim.py")
KILL_BOUND_S = 5.0


@dataclass(frozen=True)
class Command:
    """What to run and how to end it."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    log: Path
    stop_signal: signal.Signals = signal.SIGTERM
    grace_s: float = 5.0
    not_root: str = ""
    """Give up root before running (name of the user to become where user namespaces are forbidden)."""
    needs: tuple[Path, ...] = ()
    """What that user must own."""
    cwd: Path | None = None


@dataclass
class Child:
    """A running command."""

    command: Command
    token: str
    popen: subprocess.Popen[bytes]
    started_ticks: int | None
    _exited: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def spawn(cls, command: Command, token: str) -> Child:
        """Start the command. Call from the thread whose death should end it (the loop's)."""
        shim = [sys.executable, "-I", "-S", str(_SHIM), f"--parent={os.getpid()}"]
        shim.append(f"--death-signal={int(command.stop_signal)}")
        if command.not_root and os.geteuid() == 0:
            shim += [f"--not-root={command.not_root}", *(f"--needs={path}" for path in command.needs)]
        command.log.parent.mkdir(parents=True, exist_ok=True)
        with command.log.open("ab") as log:
            popen = subprocess.Popen(
                [*shim, "--", *command.argv],
                env={**command.env, reaper.MARK: f"{token}/{command.name}"},
                cwd=command.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        child = cls(command, token, popen, reaper.start_ticks(popen.pid))
        child._watch()
        return child

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        handle = os.pidfd_open(self.popen.pid)

        def exited() -> None:
            loop.remove_reader(handle)
            os.close(handle)
            self.popen.wait()
            self._exited.set()

        loop.add_reader(handle, exited)

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def running(self) -> bool:
        return not self._exited.is_set()

    async def wait(self) -> int:
        """Exit status once it ends: negative for a signal, as in `subprocess`."""
        await self._exited.wait()
        return int(self.popen.returncode)

    async def stop(self, grace_s: float | None = None) -> None:
        """Ask it to end, kill it after the grace, then end whatever it left behind."""
        grace = self.command.grace_s if grace_s is None else grace_s
        if self.running and grace > 0:
            self.popen.send_signal(self.command.stop_signal)
            await self.wait_within(grace)
        if self.running:
            self.popen.kill()
            await self.wait_within(KILL_BOUND_S)
        await self.sweep()

    async def wait_within(self, seconds: float) -> None:
        """Return once it ended or `seconds` passed."""
        try:
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        except TimeoutError:
            return

    async def sweep(self) -> None:
        """End what an ended child left behind (helpers in its own session or others, by mark)."""
        await asyncio.to_thread(reaper.end_marked, self.token, 0.0, self.command.name, KILL_BOUND_S)


def tail(path: Path, lines: int = 20, window: int = 16_384) -> str:
    """The last lines of a log, for error messages."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - window))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
