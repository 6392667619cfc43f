"""The object store, async: everything large lies here and messages carry `Blob` claim checks.

Invariants:
* no call blocks the event loop; each runs in a bounded thread pool and ends within its deadline;
* network and server failures are retried with jittered backoff until the deadline, then `StoreUnavailable`;
* a `get` of a blob that names a digest returns exactly those bytes or raises `CorruptObject`;
* writes are idempotent: the same key and bytes may be put any number of times, by anyone.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from sandpiper.store.errors import (
    CorruptObject,
    MissingObject,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)
from sandpiper.store.s3 import S3, sha256_file
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

R = TypeVar("R")
BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 2.0


class ObjectStore:
    """One bucket of an S3 store."""

    def __init__(self, settings: ObjectSettings, rng: random.Random | None = None) -> None:
        self._settings = settings
        self._rng = rng or random.Random()
        self._s3 = S3(settings)
        self._threads = ThreadPoolExecutor(settings.connections, thread_name_prefix="objects")

    async def start(self) -> None:
        """Wait for the store (bounded) and create the bucket. Raises `StoreUnavailable`, `StoreRefused`."""
        await self._call(self._s3.ensure_bucket, deadline=self._settings.start_deadline_s)

    async def close(self) -> None:
        """Let go of threads and connections. Requests in flight end by their own timeouts."""
        self._threads.shutdown(wait=False, cancel_futures=True)
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
        blob = self._blob(key, hashlib.sha256(data).hexdigest(), len(data))
        await self._call(functools.partial(self._s3.put, key, data), size=len(data))
        return blob

    async def put_by_digest(self, prefix: str, data: bytes, suffix: str = "") -> Blob:
        """Store under `<prefix>/<sha256><suffix>`; not uploaded again when it is there."""
        digest = hashlib.sha256(data).hexdigest()
        key = f"{prefix.rstrip('/')}/{digest}{suffix}"
        if await self._call(functools.partial(self._s3.size, key)) != len(data):
            await self._call(functools.partial(self._s3.put, key, data), size=len(data))
        return self._blob(key, digest, len(data))

    async def put_file(self, key: str, path: Path) -> Blob:
        """Store a file without reading it into memory as a whole."""
        size = (await asyncio.to_thread(path.stat)).st_size
        digest = await self._call(functools.partial(sha256_file, path), size=size)
        await self._call(functools.partial(self._s3.put_file, key, path), size=size)
        return self._blob(key, digest, size)

    async def get(self, blob: Blob | str) -> bytes:
        """The bytes of a blob (verified when it names a digest) or of a plain uri.

        Raises `MissingObject`, `CorruptObject`, `StoreUnavailable`.
        """
        key, sha256, size = self._locate(blob)
        data = await self._call(functools.partial(self._s3.read, key), size=size)
        if sha256 and hashlib.sha256(data).hexdigest() != sha256:
            raise CorruptObject(f"{key}: the {len(data)} bytes stored do not have sha256 {sha256}")
        return data

    async def get_to_file(self, blob: Blob | str, path: Path) -> None:
        """Download to `path` (verified as in `get`); `path` is replaced in one step or not at all."""
        key, sha256, size = self._locate(blob)
        await self._call(functools.partial(self._s3.read_to_file, key, path, sha256), size=size)

    async def read(self, key: str) -> bytes | None:
        """The bytes under `key`, None when absent."""
        try:
            return await self._call(functools.partial(self._s3.read, key))
        except MissingObject:
            return None

    async def exists(self, key: str) -> bool:
        return await self._call(functools.partial(self._s3.size, key)) is not None

    async def list(self, prefix: str) -> list[str]:
        """All keys that start with `prefix`, sorted."""
        return await self._call(functools.partial(self._s3.list, prefix))

    async def delete(self, key: str) -> None:
        """Remove an object; absent is fine."""
        await self._call(functools.partial(self._s3.delete, key))

    def _blob(self, key: str, sha256: str, size: int) -> Blob:
        return Blob(uri=self.uri(key), sha256=sha256, bytes=size)

    def _locate(self, blob: Blob | str) -> tuple[str, str, int]:
        if isinstance(blob, str):
            return self.key(blob), "", 0
        return self.key(blob.uri), blob.sha256, blob.bytes

    async def _call(self, call: Callable[[], R], size: int = 0, deadline: float | None = None) -> R:
        """Run `call` in a thread, again and again until it answers or the deadline passes."""
        budget = (deadline or self._settings.deadline_s) + size / self._settings.min_bytes_per_s
        loop = asyncio.get_running_loop()
        ends = loop.time() + budget
        pause = BACKOFF_FIRST_S
        while True:
            try:
                async with asyncio.timeout_at(ends):
                    return await loop.run_in_executor(self._threads, call)
            except TimeoutError as error:
                raise StoreUnavailable(
                    f"no answer from {self._settings.endpoint} in {budget:.1f} s"
                ) from error
            except StoreUnavailable as error:
                wait = pause * self._rng.uniform(0.5, 1.5)
                if loop.time() + wait >= ends:
                    raise StoreUnavailable(f"gave up after {budget:.1f} s: {error}") from error
            await asyncio.sleep(wait)
            pause = min(pause * 2, BACKOFF_MAX_S)
