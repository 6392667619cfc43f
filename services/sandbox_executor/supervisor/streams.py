"""What a program writes: drained always, kept in part, counted in full."""

from __future__ import annotations

import os

READ = 64 << 10
CHANNEL_LIMIT = 4 << 20
"""Bytes kept of the private channel; what follows is read and dropped."""


class HeadTail:
    """The first and the last half of `cap` bytes; the rest is dropped and counted."""

    def __init__(self, cap: int) -> None:
        self._head_cap = cap // 2
        self._tail_cap = cap - self._head_cap
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_cap - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > self._tail_cap + READ:
            del self._tail[: -self._tail_cap or None]

    def finish(self) -> tuple[bytes, bool]:
        """What was kept, the cut marked in the bytes, and whether there was one."""
        lost = self.total - self._head_cap - self._tail_cap
        if lost <= 0:
            return bytes(self._head + self._tail), False
        tail = bytes(self._tail[-self._tail_cap :]) if self._tail_cap else b""
        return b"%s\n[sandpiper: %d bytes cut]\n%s" % (self._head, lost, tail), True


class Drain:
    """One output pipe of the program."""

    def __init__(self, cap: int) -> None:
        self.kept = HeadTail(cap)
        self.fd, self.write_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.fd, False)
        self.open = True

    def read(self) -> bool:
        """Take what is there, one chunk. False when there is nothing now, or never again."""
        try:
            data = os.read(self.fd, READ)
        except BlockingIOError:
            return False
        self.kept.add(data)
        self.open = bool(data)
        return self.open

    def close(self) -> None:
        for fd in (self.fd, self.write_end):
            if fd >= 0:
                os.close(fd)
        self.fd = self.write_end = -1
        self.open = False

    def started(self) -> None:
        """The program holds the write end now; ours goes."""
        os.close(self.write_end)
        self.write_end = -1


class PrivateChannel:
    """A socket pair: input framed by 4 bytes of length, then everything that the program writes back."""

    def __init__(self, data: bytes) -> None:
        import _socket  # noqa: PLC0415  (few commands need it)

        ours, theirs = _socket.socketpair(1, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
        self.fd, self.theirs = ours.detach(), theirs.detach()
        os.set_blocking(self.fd, False)
        self.pending = memoryview(len(data).to_bytes(4, "big") + data)
        self.out = bytearray()
        self.open = True

    def write(self) -> None:
        """Send what fits."""
        try:
            self.pending = self.pending[os.write(self.fd, self.pending) :]
        except BlockingIOError:
            return
        except OSError:
            self.pending = self.pending[:0]

    def read(self) -> bool:
        """As `Drain.read`."""
        try:
            data = os.read(self.fd, READ)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        self.out += data[: CHANNEL_LIMIT - len(self.out)]
        self.open = bool(data)
        return self.open

    def started(self) -> None:
        os.close(self.theirs)
        self.theirs = -1

    def close(self) -> None:
        for fd in (self.fd, self.theirs):
            if fd >= 0:
                os.close(fd)
        self.fd = self.theirs = -1
        self.open = False
