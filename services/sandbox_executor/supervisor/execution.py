"""One run of one program, from fork to report.

Invariants: output is drained until the end, whatever happens to it; the run ends when the main process ends,
even if a child holds its output; nothing of the run is alive when the report leaves; a limit that ends the
run is named once.
"""

from __future__ import annotations

import os
import select
import time

from . import launch, workspace
from .procs import Census, Reaper
from .streams import Drain, PrivateChannel
from .wire import Closed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from .wire import Body, Wire

    Stream: TypeAlias = "Drain | PrivateChannel"

WORKSPACE = "/workspace"
DISKS = (WORKSPACE, "/tmp", "/dev/shm")
_TICK_S = 0.02
_FIRST_TICK_S = 0.005
"""Most programs are short: look more often in their first `_YOUNG_S`."""
_YOUNG_S = 0.1
_PIDS_PATIENCE_S = 1.0
"""Without a control group: so long at the process limit counts as a fork storm."""


class Execution:
    """The state of one run."""

    def __init__(self, request: dict[str, Any], body: Body, wire: Wire, wake_fd: int) -> None:
        self._request = request
        self._wire = wire
        self._wake_fd = wake_fd
        self._reaper = Reaper()
        self._stdin = body.read(request["stdin_size"])
        private = body.read(request["private_size"])
        self._out = Drain(request["output_cap"])
        self._err = Drain(request["output_cap"])
        self._channel = PrivateChannel(private) if request["private_channel"] else None
        self._stop = ""
        self._disk_seen_full = False
        self._memory_seen = self._pids_seen = 0
        self._pids_since: float | None = None
        self._pid = -1
        # A workspace that is over the limit already may still be tidied up.
        self._files_allowed = max(request["max_files"], _files())

    def run(self) -> tuple[dict[str, Any], list[bytes]]:
        """Run to the end; the report and its body (stdout, stderr, channel)."""
        try:
            self._start()
            began = time.monotonic()
            self._watch(began + self._request["wall_us"] / 1e6)
            wall = time.monotonic() - began
            killed = self._reaper.kill_all()
            self._drain_rest()
            return self._report(wall, killed)
        except BaseException:
            self._reaper.kill_all()
            raise
        finally:
            for stream in self._streams():
                stream.close()

    def _streams(self) -> list[Stream]:
        return [self._out, self._err] + ([self._channel] if self._channel else [])

    def _start(self) -> None:
        stdin = launch.readable(self._stdin)
        descriptors = {0: stdin, 1: self._out.write_end, 2: self._err.write_end}
        if self._channel:
            descriptors[launch.RESULT_FD] = self._channel.theirs
            self._request["env"]["SANDPIPER_RESULT_FD"] = b"%d" % launch.RESULT_FD
        self._pid, gate = launch.start(self._request, descriptors)
        os.close(stdin)
        for stream in self._streams():
            stream.started()
        if self._request["gated"]:
            self._wire.send({"forked": self._pid})
            self._wire.recv()
        os.write(gate, b"g")
        os.close(gate)

    def _watch(self, deadline: float) -> None:
        poller = select.poll()
        poller.register(self._wire.fd, select.POLLIN)
        poller.register(self._wake_fd, select.POLLIN)
        streams: dict[int, Stream] = {stream.fd: stream for stream in self._streams()}
        for fd in streams:
            poller.register(fd, select.POLLIN)
        if self._channel:
            poller.register(self._channel.fd, select.POLLIN | select.POLLOUT)
        next_check, young_until = 0.0, time.monotonic() + _YOUNG_S
        while not self._stop:
            self._reaper.reap()
            if self._pid in self._reaper.statuses:
                return
            now = time.monotonic()
            if now >= deadline:
                self._stop = "wall"
            if now >= next_check:
                self._check(now)
                next_check = now + (_FIRST_TICK_S if now < young_until else _TICK_S)
            wait = max(0.0, min(deadline, next_check) - now)
            for fd, event in poller.poll(wait * 1000 + 1):
                self._serve(poller, streams, fd, event)

    def _serve(self, poller: select.poll, streams: dict[int, Stream], fd: int, event: int) -> None:
        if fd == self._wake_fd:
            os.read(fd, 4096)
        elif fd == self._wire.fd:
            header, _ = self._wire.recv()
            self._stop = header["stop"].decode()
        else:
            self._pump(poller, streams[fd], event)

    def _pump(self, poller: select.poll, stream: Stream, event: int) -> None:
        if event & select.POLLOUT and isinstance(stream, PrivateChannel):
            stream.write()
            if not stream.pending:
                poller.modify(stream.fd, select.POLLIN)
        if event & ~select.POLLOUT:
            stream.read()
            if not stream.open:
                poller.unregister(stream.fd)
        if self._out.kept.total + self._err.kept.total > self._request["output_hard"]:
            self._stop = self._stop or "output"

    def _check(self, now: float) -> None:
        full = [workspace.is_full(path) for path in DISKS]
        self._disk_seen_full = self._disk_seen_full or any(full)
        if _files() > self._files_allowed:
            self._stop = self._stop or "files"
        if not self._request["gated"]:
            self._take_census(now)

    def _take_census(self, now: float) -> None:
        census = Census()
        self._memory_seen = max(self._memory_seen, census.memory)
        self._pids_seen = max(self._pids_seen, census.threads)
        if census.memory > self._request["memory"]:
            self._stop = self._stop or "memory"
        if census.cpu + self._reaper.cpu_user + self._reaper.cpu_system > self._request["cpu_us"] / 1e6:
            self._stop = self._stop or "cpu"
        if census.threads < self._request["pids"]:
            self._pids_since = None
        elif self._pids_since is None:
            self._pids_since = now
        elif now - self._pids_since > _PIDS_PATIENCE_S:
            self._stop = self._stop or "pids"

    def _drain_rest(self) -> None:
        for stream in self._streams():
            while stream.open and stream.read():
                pass

    def _report(self, wall: float, killed: int) -> tuple[dict[str, Any], list[bytes]]:
        status = self._reaper.statuses.get(self._pid, 0)
        signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0
        stdout, stdout_cut = self._out.kept.finish()
        stderr, stderr_cut = self._err.kept.finish()
        channel = bytes(self._channel.out) if self._channel else b""
        used, files = workspace.used(WORKSPACE)
        bodies = [stdout, stderr, channel]
        report = {
            "size": sum(map(len, bodies)), "sizes": [len(body) for body in bodies],
            "exit": code, "signal": signal, "stop": self._stop, "killed": killed, "wall_us": int(wall * 1e6),
            "cpu_user_us": int(self._reaper.cpu_user * 1e6),
            "cpu_system_us": int(self._reaper.cpu_system * 1e6),
            "max_rss": max(self._reaper.max_rss, self._memory_seen), "pids_seen": self._pids_seen,
            "stdout_bytes": self._out.kept.total, "stderr_bytes": self._err.kept.total,
            "stdout_cut": stdout_cut, "stderr_cut": stderr_cut, "disk": used, "files": files,
            "disk_full": any(workspace.is_full(path) for path in DISKS),
            "disk_seen_full": self._disk_seen_full,
            "file_at_limit": bool(code or signal) and self._file_at_limit(),
        }  # fmt: skip
        return report, bodies

    def _file_at_limit(self) -> bool:
        limit = self._request["rlimits"]["FSIZE"]
        if limit >= os.statvfs(WORKSPACE).f_blocks * os.statvfs(WORKSPACE).f_frsize:
            return False
        return any(
            entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_size >= limit
            for entry in os.scandir(WORKSPACE)
        )


def _files() -> int:
    return sum(workspace.used(path)[1] for path in DISKS)


def clean_scratch() -> None:
    """Empty what is not the workspace: only the workspace lives from one command to the next."""
    for path in DISKS[1:]:
        os.chmod(path, 0o1777)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            workspace.empty(folder)
        finally:
            os.close(folder)


__all__ = ["WORKSPACE", "Closed", "Execution", "clean_scratch"]
