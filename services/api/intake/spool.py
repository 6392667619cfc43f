"""Takes request bodies in: small ones into memory, uploads into an unnamed temporary file, both bounded.

Invariants: a body is never held beyond its limit; a spooled file has no name, so nothing is left behind
whatever happens; a client that falls silent is let go.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from fastapi import Request

from services.api.problems import ProblemError, invalid, too_large
from services.api.settings import UploadSettings

FLUSH_BYTES = 1 << 20


@dataclass(frozen=True)
class Spooled:
    """A received body. `file` stands at its start."""

    file: BinaryIO
    bytes: int
    sha256: str


async def read_small(request: Request, limit: int, idle_s: float = 30.0) -> bytes:
    """The whole body; 413 beyond `limit`."""
    _check_length(request, limit)
    parts: list[bytes] = []
    size = 0
    async for chunk in _chunks(request, idle_s):
        size += len(chunk)
        if size > limit:
            raise too_large(f"the body is larger than {limit} bytes")
        parts.append(chunk)
    return b"".join(parts)


class Spooler:
    """Spools uploads into `folder`, a few at a time."""

    def __init__(self, settings: UploadSettings, folder: Path) -> None:
        self.settings = settings
        self._folder = folder
        self._slots = asyncio.Semaphore(settings.concurrent)

    @asynccontextmanager
    async def receive(self, request: Request) -> AsyncIterator[Spooled]:
        """The body of `request` as a file, closed at the end of the block. 408, 413 and 422 problems."""
        _check_length(request, self.settings.max_bytes)
        async with self._slots:
            file = await asyncio.to_thread(self._open)
            try:
                yield await self._spool(request, file)
            finally:
                file.close()

    def _open(self) -> BinaryIO:
        self._folder.mkdir(parents=True, exist_ok=True)
        file: Any = tempfile.TemporaryFile(dir=self._folder, prefix="upload-")  # noqa: SIM115 (the caller closes it)
        return cast(BinaryIO, file)

    async def _spool(self, request: Request, file: BinaryIO) -> Spooled:
        digest = hashlib.sha256()
        size = 0
        try:
            async with asyncio.timeout(self.settings.total_s):
                async for block in _blocks(request, self.settings.idle_s):
                    size += len(block)
                    if size > self.settings.max_bytes:
                        raise too_large(f"the upload is larger than {self.settings.max_bytes} bytes")
                    digest.update(block)
                    await asyncio.to_thread(file.write, block)
        except TimeoutError:
            raise _slow(f"the upload took longer than {self.settings.total_s:g} s") from None
        if not size:
            raise invalid("the upload is empty")
        await asyncio.to_thread(file.seek, 0)
        return Spooled(file, size, digest.hexdigest())


async def _blocks(request: Request, idle_s: float) -> AsyncIterator[bytes]:
    """Chunks joined into larger ones, so that the disk is asked less often."""
    held = bytearray()
    async for chunk in _chunks(request, idle_s):
        held += chunk
        if len(held) >= FLUSH_BYTES:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


async def _chunks(request: Request, idle_s: float) -> AsyncIterator[bytes]:
    stream = request.stream()
    try:
        while True:
            try:
                async with asyncio.timeout(idle_s):
                    chunk = await anext(stream)
            except StopAsyncIteration:
                return
            yield chunk
    except TimeoutError:
        raise _slow(f"the client sent nothing for {idle_s:g} s") from None
    finally:
        await stream.aclose()


def _check_length(request: Request, limit: int) -> None:
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > limit:
        raise too_large(f"the body is larger than {limit} bytes")


def _slow(detail: str) -> ProblemError:
    return ProblemError(408, "request-timeout", detail, headers={"Connection": "close"})
