"""Claim checks of bytes that are at hand."""

from __future__ import annotations

import hashlib

from sandpiper.store.objects import ObjectStore
from sandpiper.v1.common_pb2 import Blob


def blob_of(objects: ObjectStore, key: str, data: bytes) -> Blob:
    """The claim check of `data`, which lies under `key`."""
    return Blob(uri=objects.uri(key), sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
