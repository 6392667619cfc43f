"""An object store in memory, with the methods that inference uses, and policies in it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import cast

from sandpiper.store import policies
from sandpiper.store.errors import CorruptObject, MissingObject, StoreUnavailable
from sandpiper.store.objects import ObjectStore
from sandpiper.store.policies import PolicyManifest, Probe
from sandpiper.v1.common_pb2 import Blob
from services.inference.policies.registry import Published
from tests.unit.inference.tiny_model import full_logprobs, reference

PROBE_IDS = [3, 14, 15, 92, 65, 35, 89, 79]


class MemoryObjects:
    """`down` makes every call fail as an outage does; `gets` counts reads."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.down = False
        self.gets = 0

    def typed(self) -> ObjectStore:
        """As the type that the code under test asks for."""
        return cast(ObjectStore, self)

    async def put(self, key: str, data: bytes) -> Blob:
        self._check()
        self.data[key] = data
        return Blob(uri=f"s3://b/{key}", sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))

    async def put_by_digest(self, prefix: str, data: bytes, suffix: str = "") -> Blob:
        return await self.put(f"{prefix}/{hashlib.sha256(data).hexdigest()}{suffix}", data)

    async def put_file(self, key: str, path: Path) -> Blob:
        return await self.put(key, path.read_bytes())

    async def read(self, key: str) -> bytes | None:
        self._check()
        return self.data.get(key)

    async def get(self, blob: Blob | str) -> bytes:
        self._check()
        self.gets += 1
        uri, sha256 = (blob, "") if isinstance(blob, str) else (blob.uri, blob.sha256)
        data = self.data.get(uri.removeprefix("s3://b/"))
        if data is None:
            raise MissingObject(uri)
        if sha256 and hashlib.sha256(data).hexdigest() != sha256:
            raise CorruptObject(uri)
        return data

    async def get_to_file(self, blob: Blob | str, path: Path) -> None:
        path.write_bytes(await self.get(blob))

    def _check(self) -> None:
        if self.down:
            raise StoreUnavailable("the store is away")


def true_probe(folder: Path, tolerance: float = 0.05) -> Probe:
    """What a learner says about these weights."""
    rows = full_logprobs(reference(folder), PROBE_IDS)
    logprobs = [float(row[token]) for row, token in zip(rows, PROBE_IDS[1:], strict=True)]
    return Probe(prompt_ids=PROBE_IDS, logprobs=logprobs, tolerance=tolerance)


async def publish(
    objects: ObjectStore, folder: Path, version: int, run_id: str = "run-a", probe: Probe | None = None
) -> Published:
    """Publish a folder as a learner would."""
    manifest = PolicyManifest(run_id=run_id, version=version, probe=probe or true_probe(folder))
    blob = await policies.publish(objects, manifest, folder)
    return Published.of(run_id, version, blob)
