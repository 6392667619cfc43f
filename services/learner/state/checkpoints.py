"""Checkpoints: everything that a step changed, committed by one write, the manifest's.

Invariants:
* `checkpoints/<run>/<step>/manifest.json` is written after every object it names and deleted before any;
* objects have names of their own per attempt, so a writer that lost the run cannot change a committed
  checkpoint;
* the state at a step is that of its lineage's origin with the logged gradients applied in order; the origin
  of a young run is its published policy version 0.
"""

from __future__ import annotations

import base64
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from sandpiper.store.errors import CorruptObject
from sandpiper.store.objects import ObjectStore
from sandpiper.v1.common_pb2 import Blob
from sandpiper.v1.training_pb2 import TrainingStep
from services.learner.state.blobs import blob_of
from services.learner.state.ledger import Ledger

MANIFEST = "manifest.json"
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


class Logged(BaseModel):
    """What a step changed: the gradients that its optimizer updates used, in the precision that they had."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    step: int = Field(ge=1)
    files: dict[str, StoredFile] = {}
    """Safetensors; none when the step had no update."""


class Lineage(BaseModel):
    """Where the state at a step comes from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    origin_step: int = Field(0, ge=0)
    origin: dict[str, StoredFile] = {}
    """Weights, AdamW state and rng in fp32 at `origin_step`; none at step 0, which starts from policy
    version 0."""
    log: tuple[Logged, ...] = ()
    """Every step since, in order."""

    def files(self) -> list[StoredFile]:
        """Everything that a restore needs."""
        return [*self.origin.values(), *(file for logged in self.log for file in logged.files.values())]


class CheckpointManifest(BaseModel):
    """A committed step."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run_id: str
    step: int = Field(ge=0)
    version: int = Field(ge=0)
    """Of the policy that has these weights."""
    document: str
    """The run document, JSON."""
    base: str = ""
    """What version 0 was."""
    lineage: Lineage = Lineage()
    ledger: StoredFile | None = None
    """What was consumed up to here; None at step 0."""
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
        steps = await self.steps(run_id)
        if not steps:
            return None
        key = self._key(run_id, steps[-1], MANIFEST)
        data = await self._objects.read(key)
        if data is None:  # pruned in between: a newer one is there
            return await self.latest(run_id)
        try:
            return CheckpointManifest.model_validate_json(data), blob_of(self._objects, key, data)
        except ValueError as error:
            raise CorruptObject(f"{key}: {error}") from error

    async def steps(self, run_id: str) -> list[int]:
        """Committed steps, ascending."""
        keys = await self._objects.list(f"checkpoints/{run_id}/")
        found = (key.split("/") for key in keys if key.endswith(f"/{MANIFEST}"))
        return sorted(int(parts[2]) for parts in found if len(parts) == 4)

    async def put_file(self, run_id: str, step: int, attempt: str, path: Path) -> StoredFile:
        """Store an object of a checkpoint. It means nothing until `commit`."""
        key = self._key(run_id, f"{step}/{attempt}", path.name)
        return StoredFile.of(await self._objects.put_file(key, path))

    async def put_ledger(self, run_id: str, step: int, attempt: str, ledger: Ledger) -> StoredFile:
        """The same for a ledger."""
        key = self._key(run_id, f"{step}/{attempt}", LEDGER)
        return StoredFile.of(await self._objects.put(key, ledger.encode()))

    async def commit(self, manifest: CheckpointManifest) -> Blob:
        """Make a checkpoint real."""
        data = manifest.model_dump_json(indent=1).encode()
        return await self._objects.put(self._key(manifest.run_id, manifest.step, MANIFEST), data)

    async def ledger(self, manifest: CheckpointManifest) -> Ledger:
        """What had been consumed at `manifest`."""
        if manifest.ledger is None:
            return Ledger()
        return Ledger.decode(await self._objects.get(manifest.ledger.blob()))

    async def fetch(self, file: StoredFile, path: Path) -> None:
        """Download an object of a checkpoint to `path`, verified."""
        await self._objects.get_to_file(file.blob(), path)

    async def put_event(self, event: TrainingStep) -> None:
        """Keep a step's event beyond its checkpoint, to answer for its groups at any later time."""
        key = self._key(event.run_id, "steps", f"{event.step}.binpb")
        await self._objects.put(key, event.SerializeToString(deterministic=True))

    async def event(self, run_id: str, step: int) -> TrainingStep | None:
        """The event of a step, None when there is none."""
        data = await self._objects.read(self._key(run_id, "steps", f"{step}.binpb"))
        return None if data is None else TrainingStep.FromString(data)

    async def prune(self, run_id: str, keep: int) -> None:
        """Delete all but the newest `keep` checkpoints and what they need; also what attempts that never
        committed left behind, unless it is newer than the newest checkpoint: it may be under way."""
        steps = await self.steps(run_id)
        kept = steps[-keep:] if keep else []
        needed = {self._key(run_id, step, MANIFEST) for step in kept}
        for step in kept:
            needed |= await self._needed(run_id, step)
        keys = [key for key in await self._objects.list(f"checkpoints/{run_id}/") if key not in needed]
        newest = steps[-1] if steps else 0
        gone = [key for key in keys if (of := _step_of(key)) is not None and of <= newest]
        for key in sorted(gone, key=lambda key: not key.endswith(f"/{MANIFEST}")):
            await self._objects.delete(key)

    async def _needed(self, run_id: str, step: int) -> set[str]:
        data = await self._objects.read(self._key(run_id, step, MANIFEST))
        if data is None:
            return set()
        manifest = CheckpointManifest.model_validate_json(data)
        files = [*manifest.lineage.files(), *([manifest.ledger] if manifest.ledger else [])]
        return {self._objects.key(file.uri) for file in files}

    def _key(self, run_id: str, part: int | str, name: str) -> str:
        return f"checkpoints/{run_id}/{part}/{name}"


def _step_of(key: str) -> int | None:
    """3 for `checkpoints/<run>/3/…`; None for what belongs to no checkpoint."""
    part = key.split("/")[2]
    return int(part) if part.isdigit() else None


def encode_event(event: TrainingStep) -> str:
    """For `CheckpointManifest.event`."""
    return base64.b64encode(event.SerializeToString(deterministic=True)).decode()
