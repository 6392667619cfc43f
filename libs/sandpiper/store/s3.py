"""Blocking S3 calls with one meaning per failure. Runs in worker threads; `objects.py` is the async face.

Invariants:
* one HTTP attempt per call: retries belong to the caller, who knows the deadline;
* a network or server failure is `StoreUnavailable`, an absent object `MissingObject`, anything else the store
  says is `StoreRefused`; local file errors pass through as `OSError`.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO

import urllib3
from minio import Minio
from minio.error import InvalidResponseError, S3Error, ServerError

from sandpiper.store.errors import CorruptObject, MissingObject, StoreError, StoreRefused, StoreUnavailable
from sandpiper.store.settings import ObjectSettings

CHUNK = 1 << 20
ONE_REQUEST = 5 << 30
"""Largest object that S3 takes in one PUT, bytes."""
UPLOAD_PERMIT = timedelta(minutes=15)
"""A signed address is looked at when the request begins; the rest is for clocks that differ."""
_ABSENT = {"NoSuchKey", "NoSuchObject", "ResourceNotFound"}
_CODE = re.compile(r"<Code>(\w+)</Code>")
_TRANSIENT = {"SlowDown", "SlowDownRead", "SlowDownWrite", "InternalError", "RequestTimeout", "NoSuchBucket"}


def _named(code: str, status: int, what: str) -> StoreError:
    """The error of ours for an S3 error code and HTTP status."""
    if code in _ABSENT:
        return MissingObject(what)
    if code in _TRANSIENT or status >= 500 or status in {0, 408, 429}:
        return StoreUnavailable(what)
    return StoreRefused(what)


def _refusal(status: int, body: str, what: str = "the store") -> StoreError:
    """The error of ours for an answer whose body may be an S3 error document."""
    found = _CODE.search(body)
    return _named(found[1] if found else "", status, f"{what}: HTTP {status}: {body[:500]}")


@contextmanager
def _failures_named() -> Iterator[None]:
    try:
        yield
    except S3Error as error:
        status = error.response.status if error.response is not None else 0
        what = f"{error.code}: {error.message} ({error.object_name or error.bucket_name or ''})"
        raise _named(error.code or "", status, what) from error
    except InvalidResponseError as error:
        # rclone labels its errors text/xml, which the client does not parse.
        raise _refusal(error._code, error._body or "") from error
    except (ServerError, urllib3.exceptions.HTTPError) as error:
        raise StoreUnavailable(f"{type(error).__name__}: {error}") from error


def sha256_file(path: Path) -> str:
    """Lower-case hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digested(file: BinaryIO, digest: Any) -> Iterator[bytes]:
    """The parts of a file, each fed to `digest` before it is given."""
    while part := file.read(CHUNK):
        digest.update(part)
        yield part


class S3:
    """A bucket. Thread-safe; every method blocks for at most the timeouts of the settings per request."""

    def __init__(self, settings: ObjectSettings) -> None:
        self._bucket = settings.bucket
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=settings.connect_timeout_s, read=settings.read_timeout_s),
            maxsize=settings.connections,
            retries=urllib3.Retry(total=0),
        )
        # urllib3 sends a body under the connect timeout, which is too short for a store that flushes a disk.
        self._upload_timeout = urllib3.Timeout(connect=settings.read_timeout_s, read=settings.read_timeout_s)
        self._client: Any = Minio(
            settings.endpoint,
            access_key=settings.access_key or None,
            secret_key=settings.secret_key.get_secret_value() or None,
            secure=settings.secure,
            region=settings.region,
            http_client=self._pool,
        )

    def ensure_bucket(self) -> None:
        """Create the bucket unless it is there (another service may win the race)."""
        with _failures_named():
            if self._client.bucket_exists(self._bucket):
                return
            try:
                self._client.make_bucket(self._bucket)
            except S3Error as error:
                if error.code not in {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}:
                    raise

    def size(self, key: str) -> int | None:
        """Bytes of the object, None when absent."""
        try:
            with _failures_named():
                return int(self._client.stat_object(self._bucket, key).size)
        except MissingObject:
            return None

    def put(self, key: str, data: bytes) -> None:
        with _failures_named():
            self._client.put_object(self._bucket, key, io.BytesIO(data), len(data))

    def put_file(self, key: str, path: Path) -> str:
        """Store a file; returns its sha256, computed while it is sent.

        The address is signed, the bytes are not: over plain HTTP the client would digest them once more and
        so would the store, and on a processor without SHA instructions digests take longer than the upload.
        Damage on the way is therefore found by whoever reads the object with its digest, not by the store.
        """
        with path.open("rb") as file, _failures_named():
            size = os.fstat(file.fileno()).st_size
            if size > ONE_REQUEST:
                self._client.put_object(self._bucket, key, file, size)
                return sha256_file(path)
            url = self._client.presigned_put_object(self._bucket, key, expires=UPLOAD_PERMIT)
            digest = hashlib.sha256()
            self._send(key, url, _digested(file, digest), size)
            return digest.hexdigest()

    def _send(self, key: str, url: str, body: Iterable[bytes], size: int) -> None:
        headers = {"Content-Length": str(size)}
        try:
            answer = self._pool.request("PUT", url, body=body, headers=headers, timeout=self._upload_timeout)
        except urllib3.exceptions.HTTPError as error:  # whose text may hold the signed address
            reason = getattr(error, "reason", None) or error
            raise StoreUnavailable(f"{key}: {type(reason).__name__} while it was sent") from None
        if answer.status >= 300:
            raise _refusal(answer.status, answer.data.decode("utf-8", "replace"), key)

    def read(self, key: str) -> bytes:
        parts: list[bytes] = []
        self._stream(key, parts.append)
        return b"".join(parts)

    def read_to_file(self, key: str, path: Path, sha256: str) -> None:
        """Download beside `path`, verify (unless `sha256` is empty), then rename: never half a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        digest = hashlib.sha256()
        try:
            with os.fdopen(handle, "wb") as file:
                self._stream(key, file.write, digest.update)
            if sha256 and digest.hexdigest() != sha256:
                raise CorruptObject(f"{key}: expected sha256 {sha256}, got {digest.hexdigest()}")
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _stream(self, key: str, *sinks: Callable[[bytes], object]) -> None:
        with _failures_named():
            response = self._client.get_object(self._bucket, key)
            try:
                expected = response.headers.get("Content-Length")
                received = 0
                for part in response.stream(CHUNK):
                    received += len(part)
                    for sink in sinks:
                        sink(part)
            finally:
                response.close()
                response.release_conn()
        if expected is not None and received != int(expected):
            raise StoreUnavailable(f"{key}: connection ended after {received} of {expected} bytes")

    def list(self, prefix: str) -> list[str]:
        with _failures_named():
            found = self._client.list_objects(self._bucket, prefix=prefix, recursive=True)
            return sorted(item.object_name for item in found if not item.is_dir)

    def delete(self, key: str) -> None:
        """Remove the object; absent is fine."""
        try:
            with _failures_named():
                self._client.remove_object(self._bucket, key)
        except MissingObject:
            return

    def close(self) -> None:
        self._pool.clear()
