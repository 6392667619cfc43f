"""Snapshots between sandbox and object store: zstd around the sandbox's tar, and a bounded cache of the
newest.

The host never looks into a tar; it only packs and unpacks bytes, and never more of them than a bound.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

import zstandard

from sandpiper.store.objects import CorruptObject, ObjectStore
from sandpiper.store.snapshots import get_snapshot, put_snapshot
from sandpiper.v1.common_pb2 import Blob

LEVEL = 3
_MAGIC = b"\x28\xb5\x2f\xfd"
_INLINE = 256 << 10


def pack(tar: bytes) -> bytes:
    """Compress; the same bytes give the same result (with the same zstd)."""
    return zstandard.ZstdCompressor(level=LEVEL).compress(tar)


def unpack(data: bytes, max_bytes: int) -> bytes:
    """Decompress (a plain tar passes as it is). Raises CorruptObject when malformed or larger than
    `max_bytes`.
    """
    tar = _decompress(data, max_bytes) if data.startswith(_MAGIC) else data
    if len(tar) > max_bytes:
        raise CorruptObject(f"the archive unpacks to more than {max_bytes} bytes")
    return tar


def _decompress(data: bytes, max_bytes: int) -> bytes:
    try:
        promised = zstandard.frame_content_size(data)  # -1: the frame does not say
        with zstandard.ZstdDecompressor().stream_reader(data) as reader:
            tar = reader.read(max_bytes + 1)
    except zstandard.ZstdError as error:
        raise CorruptObject(f"not a zstd archive: {error}") from error
    if promised >= 0 and len(tar) != min(promised, max_bytes + 1):
        raise CorruptObject(f"the archive is cut short: {len(tar)} of {promised} bytes")
    return tar


class Archives:
    """Fetches and stores archives; remembers packed ones up to `cache_bytes`."""

    def __init__(self, objects: ObjectStore, cache_bytes: int) -> None:
        self._objects = objects
        self._cache: OrderedDict[str, bytes] = OrderedDict()
        self._left = cache_bytes

    async def fetch(self, blob: Blob, max_bytes: int) -> bytes:
        """The tar behind a blob. Raises the object store's errors; CorruptObject for what is no archive."""
        data = self._cache.get(blob.sha256)
        if data is None:
            data = await get_snapshot(self._objects, blob)
            self._remember(blob.sha256, data)
        else:
            self._cache.move_to_end(blob.sha256)
        return await asyncio.to_thread(unpack, data, max_bytes)

    async def store(self, tar: bytes) -> Blob:
        """Keep a tar as a snapshot."""
        data = pack(tar) if len(tar) < _INLINE else await asyncio.to_thread(pack, tar)
        blob = await put_snapshot(self._objects, data)
        self._remember(blob.sha256, data)
        return blob

    def _remember(self, digest: str, data: bytes) -> None:
        if not digest or digest in self._cache:
            return
        self._cache[digest] = data
        self._left -= len(data)
        while self._left < 0 and self._cache:
            _, dropped = self._cache.popitem(last=False)
            self._left += len(dropped)
