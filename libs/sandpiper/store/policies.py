"""Published policies: files first, manifest last. A policy exists exactly when its manifest does.

Invariants:
* `policies/<run>/<version>/manifest.json` is written after every file it names, and deleted before any;
* a version that another run acts with is pinned before that run exists, and outlives retention;
* `fetch` leaves a folder whose files all have the digests of the manifest, or raises.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator

from sandpiper.store.objects import CorruptObject, ObjectStore
from sandpiper.store.s3 import sha256_file
from sandpiper.v1.common_pb2 import Blob

MANIFEST = "manifest.json"
PINS = "pins/"
"""`pins/<run>/<version>/<user>`: an empty object says that the run `user` acts with that version."""
_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PolicyFile(_Strict):
    """One file of a policy in the object store."""

    uri: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)


class Probe(_Strict):
    """A prompt and what the learner says about it; inference must agree before it serves the weights."""

    prompt_ids: list[int] = Field(default_factory=list)
    logprobs: list[float] = Field(default_factory=list)
    """Log-probability of each of `prompt_ids[1:]` given what stands before it (nats)."""
    tolerance: float = Field(0.25, gt=0)
    """Largest mean absolute difference that is accepted."""


class PolicyManifest(_Strict):
    """What a policy version is made of."""

    run_id: str = Field(pattern=r"^[A-Za-z0-9_.-]+$")
    version: int = Field(ge=0)
    step: int = Field(0, ge=0)
    """Optimizer steps that led to it."""
    base: str = ""
    """What version 0 was: starter, tiny, a hub id, a path or `run/version`."""
    dtype: str = "bfloat16"
    """Of the stored weights."""
    files: dict[str, PolicyFile] = Field(default_factory=dict)
    """File name -> where it lies; filled in by `publish`."""
    weights_sha256: str = ""
    """`weights_digest` of `files`; filled in by `publish`."""
    probe: Probe = Probe()
    created_at: float = 0.0
    """Unix seconds."""

    @field_validator("files")
    @classmethod
    def _plain_names(cls, files: dict[str, PolicyFile]) -> dict[str, PolicyFile]:
        for name in files:
            if not _NAME.match(name) or name == MANIFEST:
                raise ValueError(f"not a plain file name: {name!r}")
        return files


def weights_digest(files: Mapping[str, PolicyFile]) -> str:
    """Digest of the weights: of `model.safetensors` itself, or of the names and digests of all shards."""
    shards = {name: file.sha256 for name, file in files.items() if name.endswith(".safetensors")}
    if len(shards) == 1:
        return next(iter(shards.values()))
    lines = "".join(f"{name}:{sha256}\n" for name, sha256 in sorted(shards.items()))
    return hashlib.sha256(lines.encode()).hexdigest() if shards else ""


def manifest_key(run_id: str, version: int) -> str:
    return f"policies/{run_id}/{version}/{MANIFEST}"


async def publish(objects: ObjectStore, manifest: PolicyManifest, folder: Path) -> Blob:
    """Store every file of `folder` (flat), then the manifest that names them. Returns the manifest."""
    files: dict[str, PolicyFile] = {}
    for path in await asyncio.to_thread(_files_of, folder):
        blob = await objects.put_file(f"policies/{manifest.run_id}/{manifest.version}/{path.name}", path)
        files[path.name] = PolicyFile(uri=blob.uri, sha256=blob.sha256, bytes=blob.bytes)
    if not weights_digest(files):
        raise ValueError(f"no .safetensors file in {folder}")
    complete = manifest.model_copy(update={"files": files, "weights_sha256": weights_digest(files)})
    return await objects.put(
        manifest_key(manifest.run_id, manifest.version), complete.model_dump_json(indent=1).encode()
    )


async def load_manifest(objects: ObjectStore, manifest: Blob | str) -> PolicyManifest:
    """Parse a manifest. Raises `CorruptObject` when it is not one or contradicts itself."""
    raw = await objects.get(manifest)
    try:
        parsed = PolicyManifest.model_validate_json(raw)
    except ValueError as error:
        raise CorruptObject(f"not a policy manifest: {error}") from error
    if parsed.weights_sha256 != weights_digest(parsed.files):
        raise CorruptObject(
            f"manifest of {parsed.run_id}/{parsed.version}: weights digest is not that of its files"
        )
    return parsed


async def fetch(objects: ObjectStore, manifest: Blob | str, folder: Path) -> PolicyManifest:
    """Bring a policy into `folder` (made if absent); files already there with the right digest stay."""
    parsed = await load_manifest(objects, manifest)
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    for name, file in parsed.files.items():
        path = folder / name
        if not await asyncio.to_thread(_is, path, file):
            await objects.get_to_file(Blob(uri=file.uri, sha256=file.sha256, bytes=file.bytes), path)
    await asyncio.to_thread((folder / MANIFEST).write_text, parsed.model_dump_json(indent=1))
    return parsed


def _files_of(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_file() and p.name != MANIFEST and _NAME.match(p.name))


def _is(path: Path, file: PolicyFile) -> bool:
    return path.is_file() and path.stat().st_size == file.bytes and sha256_file(path) == file.sha256


async def versions(objects: ObjectStore, run_id: str) -> list[int]:
    """Published versions of a run, ascending."""
    keys = await objects.list(f"policies/{run_id}/")
    return sorted(int(key.split("/")[2]) for key in keys if key.endswith(f"/{MANIFEST}"))


async def pin(objects: ObjectStore, run_id: str, version: int, user: str) -> None:
    """Keep a version for as long as the run `user` acts with it."""
    await objects.put(f"{PINS}{run_id}/{version}/{user}", b"")


async def unpin(objects: ObjectStore, user: str) -> None:
    """Let go of whatever `user` has pinned."""
    for key in await objects.list(PINS):
        if key.endswith(f"/{user}"):
            await objects.delete(key)


async def pinned(objects: ObjectStore, run_id: str) -> set[int]:
    """Versions of a run that others act with."""
    return {int(key.split("/")[2]) for key in await objects.list(f"{PINS}{run_id}/")}


async def prune(objects: ObjectStore, run_id: str, keep: int) -> list[int]:
    """Delete all but version 0, the newest `keep` and pinned ones. Returns the versions deleted."""
    present = await versions(objects, run_id)
    spared = {0, *await pinned(objects, run_id), *(present[-keep:] if keep > 0 else present[-1:])}
    gone = [version for version in present if version not in spared]
    for version in gone:
        await objects.delete(manifest_key(run_id, version))
        for key in await objects.list(f"policies/{run_id}/{version}/"):
            await objects.delete(key)
    return gone
