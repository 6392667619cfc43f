"""Streams stored objects to clients: fetched to disk and verified first, so that no client gets half or
wrong bytes under a good status."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import BinaryIO

from fastapi import Request, Response
from starlette.types import Receive, Scope, Send

from sandpiper.store.blobs import blob_from_json
from services.api.schemas.common import Json
from services.api.services import Services

CHUNK = 1 << 18


class FileStream(Response):
    """Sends an open file from its start and closes it, whatever happens."""

    def __init__(self, file: BinaryIO, size: int, headers: dict[str, str], media_type: str) -> None:
        super().__init__(b"", headers={**headers, "content-length": str(size)}, media_type=media_type)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            while chunk := await asyncio.to_thread(self._file.read, CHUNK):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._file.close()


async def send_blob(
    request: Request, services: Services, blob: Json, filename: str, media_type: str
) -> Response:
    """The object of `blob` as a download; 304 when the client has it (its ETag is the digest)."""
    etag = f'"{blob.get("sha256", "")}"'
    if blob.get("sha256") and request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers={"ETag": etag})
    headers = {
        "ETag": etag,
        "Content-Disposition": f'attachment; filename="{filename}"',
        "Cache-Control": "private, max-age=31536000, immutable",
    }
    async with services.downloads:
        with tempfile.TemporaryDirectory(prefix="sandpiper-download-") as folder:
            path = Path(folder) / "object"
            await services.objects.get_to_file(blob_from_json(blob), path)
            file = await asyncio.to_thread(path.open, "rb")
    # The name is gone, the open file stays readable until it is closed.
    return FileStream(file, blob.get("bytes") or _size(file), headers, media_type)


def _size(file: BinaryIO) -> int:
    size = file.seek(0, 2)
    file.seek(0)
    return size
