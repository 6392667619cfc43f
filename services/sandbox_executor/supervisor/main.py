"""Dispatch: one request, one answer, until the executor's end of the socket closes.

Invariants: the end of the socket ends pid 1 and with it every process of the namespace; a refused request
leaves the supervisor usable; signals from inside the namespace do nothing here.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import errno
import os

from . import launch, tarball, workspace
from .execution import WORKSPACE, Execution, clean_scratch
from .procs import Unkillable
from .wire import Closed, Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .wire import Body

    Answer = tuple[dict[str, Any], Iterable[bytes]]

_ROOT = WORKSPACE.encode()


class Supervisor:
    """Handles the requests of one sandbox."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._wake_fd = _wake_on_child()
        self._handlers: dict[bytes, Callable[[dict[str, Any], Body], Answer]] = {
            b"write": self._write,
            b"restore": self._restore,
            b"run": self._run,
            b"snapshot": self._snapshot,
        }

    def serve(self) -> None:
        """Answer requests until the socket closes."""
        self._wire.send({"ready": 1, "uid": os.getuid(), "pid": os.getpid()})
        while True:
            header, body = self._wire.recv()
            if header["op"] == b"stop":
                continue  # it crossed the report of the run that it was for
            try:
                answer, chunks = self._handlers[header["op"]](header, body)
            except workspace.Refused as refused:
                answer, chunks = {"error": refused.code, "detail": str(refused)}, ()
            except ValueError as error:
                answer, chunks = {"error": "bad_request", "detail": str(error)}, ()
            except OSError as error:
                answer, chunks = {"error": _word(error), "detail": str(error)}, ()
            self._wire.send(answer, chunks)

    def _write(self, header: dict[str, Any], body: Body) -> Answer:
        root = _open_workspace()
        try:
            for path, mode, size in header["files"]:
                workspace.write_file(root, path, mode, size, body)
        finally:
            os.close(root)
        return {"ok": 1}, ()

    def _restore(self, header: dict[str, Any], body: Body) -> Answer:
        root = _open_workspace()
        try:
            if header["clear"]:
                workspace.empty(root)
            return {"ok": 1, "members": tarball.unpack(root, body, header["keep"])}, ()
        finally:
            os.close(root)

    def _run(self, header: dict[str, Any], body: Body) -> Answer:
        os.chmod(WORKSPACE, 0o755)
        try:
            return Execution(header, body, self._wire, self._wake_fd).run()
        finally:
            clean_scratch()

    def _snapshot(self, header: dict[str, Any], _: Body) -> Answer:
        os.chmod(WORKSPACE, 0o755)
        entries = tarball.plan(_ROOT, header["max_files"])
        size = tarball.total(entries)
        if size > header["max_bytes"]:
            raise workspace.Refused("too_big", f"the workspace needs {size} bytes as an archive")
        return {"ok": 1, "size": size, "members": len(entries)}, tarball.stream(_ROOT, entries)


def _open_workspace() -> int:
    os.chmod(WORKSPACE, 0o755)
    return os.open(WORKSPACE, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _word(error: OSError) -> str:
    return "no_space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "os_error"


def _wake_on_child() -> int:
    wake_fd, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    _signal.signal(_signal.SIGCHLD, lambda *_: None)
    _signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    return wake_fd


def main(fd: int) -> None:
    """Serve the socket `fd` as pid 1; never returns."""
    status = 1
    try:
        launch.harden()
        import fcntl  # noqa: F401, PLC0415  (a child between fork and exec must not import)

        Supervisor(Wire(fd)).serve()
    except (Closed, Unkillable, ConnectionError):
        status = 0
    except BaseException as error:
        os.write(2, f"supervisor: {type(error).__name__}: {error}\n".encode())
        raise
    finally:
        os._exit(status)
