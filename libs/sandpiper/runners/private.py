"""The private descriptor of a command: a plan comes in, a report goes out; nobody else sees either.

Before anything secret is read the process makes itself undumpable: no other process of the same user can
then open its memory, descriptors or environment under /proc, or trace it. Descriptors are closed on exec,
so that children never hold this one. Signals that would end this process are ignored, all but KILL and
STOP; the grader takes an end by signal for the candidate's doing.
"""

from __future__ import annotations

import _ctypes
import _signal  # type: ignore[import-not-found]  # `signal` costs 10 ms to import
import os

from sandpiper.runners.frames import IGNORED

PR_SET_DUMPABLE = 4
MAX_INPUT = 64 * 1024 * 1024
VARIABLE = "SANDPIPER_RESULT_FD"


class PrivateChannel:
    """The descriptor named by `SANDPIPER_RESULT_FD`."""

    def __init__(self) -> None:
        make_undumpable()
        for number in IGNORED:
            _signal.signal(number, _signal.SIG_IGN)
        self._fd = int(os.environ.pop(VARIABLE))
        os.set_inheritable(self._fd, False)

    def read(self) -> bytes:
        """The private input: a 4-byte big-endian length, then so many bytes."""
        size = int.from_bytes(self._exactly(4), "big")
        if size > MAX_INPUT:
            raise ValueError(f"private input of {size} bytes")
        return self._exactly(size)

    def write(self, data: bytes) -> None:
        """Everything that this process has to say; then the channel is closed."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
        os.close(self._fd)

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = os.read(self._fd, min(size, 1 << 20))
            if not part:
                raise EOFError("private input ended early")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def make_undumpable() -> None:
    """prctl(PR_SET_DUMPABLE, 0), through `_ctypes` because `ctypes` costs 10 ms to import."""
    everything = _ctypes.dlopen(None, os.RTLD_NOW)  # type: ignore[arg-type]  # None: this process
    address = _ctypes.dlsym(everything, "prctl")
    if _ctypes.call_function(address, (PR_SET_DUMPABLE, 0, 0, 0, 0)) != 0:
        raise OSError("prctl(PR_SET_DUMPABLE, 0) failed")
