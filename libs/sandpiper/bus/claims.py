"""Claim checks: a value too large for the broker lies in the object store, its address in a header."""

from __future__ import annotations

import hashlib
import json
from typing import Protocol

from sandpiper.bus.errors import BusUnavailable, Undeliverable, is_transient
from sandpiper.bus.message import CLAIM, RawHeaders
from sandpiper.v1.common_pb2 import Blob

LIMIT_BYTES = 48 * 1024
# Nothing above this rides on Kafka. Without a store, values between the two limits still may.
HARD_LIMIT_BYTES = 64 * 1024
PREFIX = "claims"


class ClaimStore(Protocol):
    """What the bus needs of an object store (`sandpiper.store.objects.ObjectStore` has it)."""

    async def put_by_digest(self, prefix: str, data: bytes, suffix: str = "") -> Blob:
        """Store under `prefix/<sha256>`; cheap when it is there already."""
        ...

    async def get(self, blob: Blob, /) -> bytes:
        """The bytes, verified against the blob's digest."""
        ...


async def check_in(store: ClaimStore | None, value: bytes, headers: RawHeaders) -> tuple[bytes, RawHeaders]:
    """Value and headers to put on the broker; large values leave a claim check behind.

    Raises ValueError when the value is too large and there is no store, BusUnavailable when that is away.
    """
    limit = HARD_LIMIT_BYTES if store is None else LIMIT_BYTES
    if len(value) <= limit or any(name == CLAIM for name, _ in headers):
        return value, headers
    if store is None:
        raise ValueError(f"message of {len(value)} bytes needs an object store (limit {HARD_LIMIT_BYTES})")
    try:
        blob = await store.put_by_digest(PREFIX, value)
    except Exception as error:
        if is_transient(error):
            raise BusUnavailable(f"claim store: {error!r}") from error
        raise
    claim = json.dumps({"uri": blob.uri, "sha256": blob.sha256, "bytes": blob.bytes})
    return b"", [*headers, (CLAIM, claim.encode())]


async def check_out(store: ClaimStore | None, claim: str) -> bytes:
    """The bytes behind a claim check.

    Raises Undeliverable(`claim_check`) when they are missing, corrupt or the check itself is malformed;
    an outage of the store passes through, to be tried again.
    """
    if store is None:
        raise Undeliverable("claim_check", "no object store configured")
    try:
        fields = json.loads(claim)
        blob = Blob(uri=fields["uri"], sha256=fields["sha256"], bytes=int(fields["bytes"]))
    except (ValueError, KeyError, TypeError) as error:
        raise Undeliverable("claim_check", f"malformed claim check: {error!r}") from error
    try:
        data = await store.get(blob)
    except Exception as error:
        if is_transient(error):
            raise
        raise Undeliverable("claim_check", f"{blob.uri}: {error!r}") from error
    if hashlib.sha256(data).hexdigest() != blob.sha256:
        raise Undeliverable("claim_check", f"{blob.uri}: digest differs")
    return data
