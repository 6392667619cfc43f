"""The object store, async: everything large lies here and messages carry `Blob` claim checks.

Invariants:
* no call blocks the event loop; each ends within its deadline (see `calls.py`);
* network and server failures are retried with jittered backoff until the deadline, then `StoreUnavailable`;
* a `get` of a blob that names a digest returns exactly those bytes or raises `CorruptObject`;
* writes are idempotent: the same key and bytes may be put any number of times, by anyone.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import random
from pathlib import Path

from sandpiper.store.calls import Calls
from sandpiper.store.errors import (
    CorruptObject,
    MissingObject,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)
from sandpiper.store.s3 import S3
from sandpiper.store.settings import ObjectSettings
from sandpiper.v1.common_pb2 import Blob

__all__ = [
    "CorruptObject",
    "MissingObject",
    "ObjectSettings",
    "ObjectStore",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
]

HASH_INLINE = 1 << 18


class ObjectStore:
    """One bucket of an S3 store."""

    def __init__(self, settings: ObjectSettings, rng: random.Random | None = None) -> None:
        self._settings = settings
        self._s3 = S3(settings)
        self._calls = Calls(settings, rng or random.Random())

    async def start(self) -> None:
        """Wait for the store (bounded) and create the bucket. Raises `StoreUnavailable`, `StoreRefused`."""
        await self._calls.run(self._s3.ensure_bucket, deadline=self._settings.start_deadline_s)

    async def close(self) -> None:
        """Let go of threads and connections. Requests in flight end by their own timeouts."""
        self._calls.close()
        self._s3.close()

    def uri(self, key: str) -> str:
        """`s3://<bucket>/<key>`."""
        return f"s3://{self._settings.bucket}/{key}"

    def key(self, uri: str) -> str:
        """The key within this store of a `Blob.uri`; ValueError when it is of another bucket."""
        prefix = f"s3://{self._settings.bucket}/"
        if not uri.startswith(prefix) or uri == prefix:
            raise ValueError(f"not an object of bucket {self._settings.bucket!r}: {uri!r}")
        return uri.removeprefix(prefix)

    async def put(self, key: str, data: bytes) -> Blob:
        """Store `data` under `key`, replacing what was there."""
        blob = self._blob(key, await _sha256(data), len(data))
        await self._calls.run(functools.partial(self._s3.put, key, data), size=len(data))
        return blob

    async def put_by_digest(self, prefix: str, data: bytes, suffix: str = "") -> Blob:
        """Store under `<prefix>/<sha256><suffix>`; not uploaded again when it is there."""
        digest = await _sha256(data)
        key = f"{prefix.rstrip('/')}/{digest}{suffix}"
        if await self._calls.run(functools.partial(self._s3.size, key)) != len(data):
            await self._calls.run(functools.partial(self._s3.put, key, data), size=len(data))
        return self._blob(key, digest, len(data))

    async def put_file(self, key: str, path: Path, together: int = 0) -> Blob:
        """Store a file without reading it into memory as a whole.

        `together`: bytes of all files that are sent at the same time, for the deadline.
        """
        size = (await asyncio.to_thread(path.stat)).st_size
        send = functools.partial(self._s3.put_file, key, path)
        digest = await self._calls.run(send, size=max(size, together))
        return self._blob(key, digest, size)

    async def get(self, blob: Blob | str) -> bytes:
        """The bytes of a blob (verified when it names a digest) or of a plain uri.

        Raises `MissingObject`, `CorruptObject`, `StoreUnavailable`.
        """
        key, sha256, size = self._locate(blob)
        data = await self._calls.run(functools.partial(self._s3.read, key), size=size)
        if sha256 and await _sha256(data) != sha256:
            raise CorruptObject(f"{key}: the {len(data)} bytes stored do not have sha256 {sha256}")
        return data

    async def get_to_file(self, blob: Blob | str, path: Path) -> None:
        """Download to `path` (verified as in `get`); `path` is replaced in one step or not at all."""
        key, sha256, size = self._locate(blob)
        await self._calls.run(functools.partial(self._s3.read_to_file, key, path, sha256), size=size)

    async def read(self, key: str) -> bytes | None:
        """The bytes under `key`, None when absent."""
        try:
            return await self._calls.run(functools.partial(self._s3.read, key))
        except MissingObject:
            return None

    async def exists(self, key: str) -> bool:
        return await self._calls.run(functools.partial(self._s3.size, key)) is not None

    async def list(self, prefix: str) -> list[str]:
        """All keys that start with `prefix`, sorted."""
        return await self._calls.run(functools.partial(self._s3.list, prefix))

    async def delete(self, key: str) -> None:
        """Remove an object; absent is fine."""
        await self._calls.run(functools.partial(self._s3.delete, key))

    def _blob(self, key: str, sha256: str, size: int) -> Blob:
        return Blob(uri=self.uri(key), sha256=sha256, bytes=size)

    def _locate(self, blob: Blob | str) -> tuple[str, str, int]:
        if isinstance(blob, str):
            return self.key(blob), "", 0
        return self.key(blob.uri), blob.sha256, blob.bytes


async def _sha256(data: bytes) -> str:
    """Lower-case hex digest; large values are hashed in a thread."""
    if len(data) > HASH_INLINE:
        return await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())
    return hashlib.sha256(data).hexdigest()
