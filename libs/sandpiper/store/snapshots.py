"""Workspace snapshots by content: `snapshots/<sha256 of the archive>`. The sandbox library makes archives."""

from __future__ import annotations

from sandpiper.store.objects import ObjectStore
from sandpiper.v1.common_pb2 import Blob

PREFIX = "snapshots"


async def put_snapshot(objects: ObjectStore, archive: bytes) -> Blob:
    """Store an archive; the same bytes are stored once."""
    return await objects.put_by_digest(PREFIX, archive)


async def get_snapshot(objects: ObjectStore, snapshot: Blob | str) -> bytes:
    """The archive of a blob or of a bare sha256, verified either way.

    Raises `MissingObject`, `CorruptObject`, `StoreUnavailable`.
    """
    if isinstance(snapshot, str):
        snapshot = Blob(uri=objects.uri(f"{PREFIX}/{snapshot}"), sha256=snapshot)
    return await objects.get(snapshot)
