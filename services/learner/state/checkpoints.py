"""Checkpoints: everything that a step changed, committed by one write, the manifest's.

Invariants:
* `checkpoints/<run>/<step>/manifest-<claim>-<token>.json` is written after every object it names and deleted
  before any;
* objects have names of their own per attempt and manifests per claim of the run, of which the newest counts:
  a writer that lost the run without noticing cannot change what its successor committed;
* step 0 has no state of its own: its weights are the published policy version 0.
"""

from __future__ import annotations

import asyncio
import base64
import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from sandpiper.store.errors import CorruptObject
from sandpiper.store.objects import ObjectStore
from sandpiper.v1.common_pb2 import Blob
from sandpiper.v1.training_pb2 import TrainingStep
from services.learner.state.blobs import blob_of
from services.learner.state.ledger import Ledger

MANIFEST = re.compile(r"manifest-(\d+)(-[\w-]+)?\.json")
TENSORS = ".safetensors"
LEDGER = "ledger.json.zst"


class StoredFile(BaseModel):
    """One object of a checkpoint."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    uri: str
    sha256: str
    bytes: int = Field(ge=0)

    @classmethod
    def of(cls, blob: Blob) -> StoredFile:
        return cls(uri=blob.uri, sha256=blob.sha256, bytes=blob.bytes)

    def blob(self) -> Blob:
        """As a claim check."""
        return Blob(uri=self.uri, sha256=self.sha256, bytes=self.bytes)


class CheckpointManifest(BaseModel):
    """A committed step."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run_id: str
    step: int = Field(ge=0)
    claim: int = Field(0, ge=0)
    """Number of the writer's claim (`Controls.claim`); 0 at step 0, which needs none."""
    token: str = ""
    """Of the writer's claim."""
    version: int = Field(ge=0)
    """Of the policy that has these weights."""
    document: str
    """The run document, JSON."""
    base: str = ""
    """What version 0 was."""
    files: dict[str, StoredFile] = {}
    """What `workshop.save_state` writes (weights and AdamW state in fp32, rng) and ledger.json.zst."""
    offsets: dict[str, dict[int, int]] = {}
    """Topic -> partition -> offset from which on messages of this run may be unconsumed. For people: what
    counts are the ids in the ledger, since a broker that lost its log counts offsets anew."""
    event: str = ""
    """The step's TrainingStep message, base64, without its `checkpoint` field."""
    created_at: float = 0.0

    def training_step(self, own: Blob) -> TrainingStep:
        """The event of this step; `own` is this manifest's blob."""
        event = TrainingStep.FromString(base64.b64decode(self.event))
        event.checkpoint.CopyFrom(own)
        return event


class Checkpoints:
    """Checkpoints of all runs."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    async def latest(self, run_id: str) -> tuple[CheckpointManifest, Blob] | None:
        """The newest committed checkpoint and its blob. Raises CorruptObject, StoreUnavailable."""
        committed = await self._committed(run_id)
        if not committed:
            return None
        key = committed[-1][2]
        data = await self._objects.read(key)
        if data is None:  # pruned in between: a newer one is there
            return await self.latest(run_id)
        try:
            return CheckpointManifest.model_validate_json(data), blob_of(self._objects, key, data)
        except ValueError as error:
            raise CorruptObject(f"{key}: {error}") from error

    async def steps(self, run_id: str) -> list[int]:
        """Committed steps, ascending."""
        return sorted({step for step, _, _ in await self._committed(run_id)})

    async def _committed(self, run_id: str) -> list[tuple[int, int, str]]:
        """Step, claim and key of every manifest, ascending."""
        keys = [key.split("/") for key in await self._objects.list(f"checkpoints/{run_id}/")]
        found = ((parts, MANIFEST.fullmatch(parts[3])) for parts in keys if len(parts) == 4)
        return sorted((int(parts[2]), int(match[1]), "/".join(parts)) for parts, match in found if match)

    async def put_state(
        self, run_id: str, step: int, attempt: str, state: Path, ledger: Ledger
    ) -> dict[str, StoredFile]:
        """Store the files of the folder `state` and the ledger. They mean nothing until `commit`."""
        folder = f"{step}/{attempt}"
        blobs = {LEDGER: await self._objects.put(self._key(run_id, folder, LEDGER), ledger.encode())}
        sizes = await asyncio.to_thread(_sizes, state)
        together = sum(sizes.values())
        # Side by side, since digests keep a core busy each.
        uploads = (
            self._objects.put_file(self._key(run_id, folder, path.name), path, together) for path in sizes
        )
        for path, done in zip(sizes, await asyncio.gather(*uploads, return_exceptions=True), strict=True):
            if isinstance(done, BaseException):
                raise done
            blobs[path.name] = done
        return {name: StoredFile.of(blob) for name, blob in blobs.items()}

    async def commit(self, manifest: CheckpointManifest) -> Blob:
        """Make a checkpoint real."""
        data = manifest.model_dump_json(indent=1).encode()
        mark = f"-{manifest.token}" if manifest.token else ""
        name = f"manifest-{manifest.claim:06d}{mark}.json"
        return await self._objects.put(self._key(manifest.run_id, manifest.step, name), data)

    async def ledger(self, manifest: CheckpointManifest) -> Ledger:
        """What had been consumed at `manifest`."""
        file = manifest.files.get(LEDGER)
        return Ledger.decode(await self._objects.get(file.blob())) if file else Ledger()

    async def fetch_state(self, manifest: CheckpointManifest, folder: Path) -> bool:
        """Download weights and optimizer state into `folder`, verified; False at step 0, which has none."""
        files = {name: file for name, file in manifest.files.items() if name.endswith(TENSORS)}
        for name, file in files.items():  # one by one: a restore is rare
            await self._objects.get_to_file(file.blob(), folder / name)
        return bool(files)

    async def put_event(self, event: TrainingStep) -> None:
        """Keep a step's event beyond its checkpoint, to answer for its groups at any later time."""
        key = self._key(event.run_id, "steps", f"{event.step}.binpb")
        await self._objects.put(key, event.SerializeToString(deterministic=True))

    async def event(self, run_id: str, step: int) -> TrainingStep | None:
        """The event of a step, None when there is none."""
        data = await self._objects.read(self._key(run_id, "steps", f"{step}.binpb"))
        return None if data is None else TrainingStep.FromString(data)

    async def prune(self, run_id: str, keep: int) -> None:
        """Delete all but the newest `keep` checkpoints, and what attempts that never committed left
        behind."""
        keys = [key.split("/") for key in await self._objects.list(f"checkpoints/{run_id}/")]
        numbered = [parts for parts in keys if len(parts) > 3 and parts[2].isdigit()]
        steps = sorted({int(p[2]) for p in numbered if MANIFEST.fullmatch(p[3])})
        kept = set(steps[max(0, len(steps) - keep) :])
        newest = max(steps, default=0)  # what lies beyond is under way
        gone = [parts for parts in numbered if int(parts[2]) not in kept and int(parts[2]) <= newest]
        for parts in sorted(gone, key=lambda parts: not MANIFEST.fullmatch(parts[3])):
            await self._objects.delete("/".join(parts))

    def _key(self, run_id: str, part: int | str, name: str) -> str:
        return f"checkpoints/{run_id}/{part}/{name}"


def _sizes(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_size for path in sorted(folder.iterdir())}


def encode_event(event: TrainingStep) -> str:
    """For `CheckpointManifest.event`."""
    return base64.b64encode(event.SerializeToString(deterministic=True)).decode()
