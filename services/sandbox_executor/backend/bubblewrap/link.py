"""The executor's end of a sandbox's control socket.

Invariants: every read has a deadline; sizes that the other side claims are bounded before they are believed;
after a timeout or a malformed answer the link is closed, since its stream can no longer be trusted to be in
step.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Any

from services.sandbox_executor.backend.protocol import Refused, SandboxLost
from services.sandbox_executor.supervisor import codec, wire


class Link:
    """Framed requests and answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, sock: socket.socket) -> Link:
        """A link over our end of a socket pair; the link owns it from now on."""
        reader, writer = await asyncio.open_unix_connection(sock=sock, limit=1 << 20)
        return cls(reader, writer)

    @property
    def open(self) -> bool:
        return not self._writer.is_closing() and not self._reader.at_eof()

    async def send(self, header: Mapping[str, Any], body: bytes = b"") -> None:
        """Send one request; waits while the other side is slow to read."""
        if not self.open:
            raise SandboxLost("closed", "the sandbox is gone")
        try:
            self._writer.write(wire.pack({**header, "size": len(body)}))
            if body:
                self._writer.write(body)
            await self._writer.drain()
        except ConnectionError as error:
            self.close()
            raise SandboxLost("supervisor_gone", str(error)) from error

    async def recv(self, timeout_s: float, max_body: int = 0) -> tuple[dict[str, Any], bytes]:
        """One answer. Raises Refused when it says so, SandboxLost when there is none."""
        try:
            async with asyncio.timeout(timeout_s):
                header, body = await self._read(max_body)
        except TimeoutError:
            self.close()
            raise SandboxLost("supervisor_silent", f"no answer within {timeout_s:.0f} s") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            self.close()
            raise SandboxLost("supervisor_gone", "the supervisor ended") from None
        except ValueError as error:
            self.close()
            raise SandboxLost("supervisor_garbled", str(error)) from error
        except asyncio.CancelledError:
            self.close()
            raise
        if "error" in header:
            detail = header.get("detail", b"")
            raise Refused(header["error"].decode(), detail.decode("utf-8", "replace"))
        return header, body

    async def _read(self, max_body: int) -> tuple[dict[str, Any], bytes]:
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        if size > wire.MAX_HEADER:
            raise ValueError(f"a header of {size} bytes")
        header: dict[str, Any] = codec.decode_map(await self._reader.readexactly(size))
        body_size = header.get("size", 0)
        if not isinstance(body_size, int) or not 0 <= body_size <= max_body:
            raise ValueError(f"a body of {body_size} bytes where {max_body} are allowed")
        return header, await self._reader.readexactly(body_size)

    def close(self) -> None:
        """Close our end: the supervisor sees it and takes the namespace down."""
        self._writer.close()
