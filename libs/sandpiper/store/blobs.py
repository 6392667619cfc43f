"""`Blob` claim checks as plain JSON, for database columns and HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandpiper.v1.common_pb2 import Blob


def blob_to_json(blob: Blob) -> dict[str, Any]:
    """`{"uri", "sha256", "bytes"}`; an unset blob gives an empty dict."""
    if not blob.uri:
        return {}
    return {"uri": blob.uri, "sha256": blob.sha256, "bytes": blob.bytes}


def blob_from_json(data: Mapping[str, Any] | None) -> Blob:
    """The inverse; None and an empty mapping give an unset blob (`not blob.uri`)."""
    if not data:
        return Blob()
    return Blob(uri=data["uri"], sha256=data.get("sha256", ""), bytes=data.get("bytes", 0))
