"""Messages over the control socket: 4 bytes of length, a bencoded header, then `size` raw bytes if it says
so.

Invariants: a message is read whole or the process ends; a body that a handler leaves unread is skipped before
the next header, so one refused request never shifts the ones after it.
"""

from __future__ import annotations

import os

from . import codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MAX_HEADER = 8 << 20
CHUNK = 256 << 10


class Closed(Exception):
    """The other side is gone."""


def pack(header: codec.Encodable) -> bytes:
    """Length and header as they cross the socket."""
    data = codec.encode(header)
    if len(data) > MAX_HEADER:
        raise ValueError("header too large")
    return len(data).to_bytes(4, "big") + data


class Body:
    """The raw bytes that follow a header; reads no further than its size."""

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self.left = size

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes. Raises ValueError when the body is shorter."""
        if size > self.left:
            raise ValueError("the body is shorter than its header says")
        self.left -= size
        return read_exactly(self._fd, size)

    def skip(self, size: int) -> None:
        """Drop `size` bytes."""
        while size > 0:
            size -= len(self.read(min(size, CHUNK)))


class Wire:
    """The supervisor's end of the control socket (blocking)."""

    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)
        self.fd = fd
        self._body: Body | None = None

    def recv(self) -> tuple[dict[str, Any], Body]:
        """The next header and its body. Raises Closed at the end of the stream."""
        if self._body is not None:
            self._body.skip(self._body.left)
        size = int.from_bytes(read_exactly(self.fd, 4), "big")
        if size > MAX_HEADER:
            raise ValueError("header too large")
        header = codec.decode_map(read_exactly(self.fd, size))
        body_size = header.get("size", 0)
        self._body = Body(self.fd, body_size if isinstance(body_size, int) else 0)
        return header, self._body

    def send(self, header: dict[str, Any], chunks: Iterable[bytes] = ()) -> None:
        """One message; `header["size"]` must be the sum of the chunks."""
        write_all(self.fd, pack(header))
        for chunk in chunks:
            write_all(self.fd, chunk)


def read_exactly(fd: int, size: int) -> bytes:
    """`size` bytes of a blocking descriptor. Raises Closed when they never come."""
    parts: list[bytes] = []
    while size > 0:
        part = os.read(fd, min(size, CHUNK))
        if not part:
            raise Closed
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def write_all(fd: int, data: bytes) -> None:
    """All of `data` to a blocking descriptor. Raises Closed when nobody reads."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BrokenPipeError:
            raise Closed from None
