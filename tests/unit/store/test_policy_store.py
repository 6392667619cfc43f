"""Policies: the manifest is last in, first out; what is fetched is what was published."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sandpiper.store import policies
from sandpiper.store.objects import CorruptObject, MissingObject, ObjectStore, StoreUnavailable
from sandpiper.store.policies import PolicyManifest, Probe
from sandpiper.v1.common_pb2 import Blob


class MemoryStore(ObjectStore):
    """An object store in a dict that remembers the order of writes and deletes, and can fail."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.log: list[tuple[str, str]] = []
        self.fail_at = -1

    def _step(self, what: str, key: str) -> None:
        if len(self.log) == self.fail_at:
            raise StoreUnavailable("down")
        self.log.append((what, key))

    def uri(self, key: str) -> str:
        return f"s3://sandpiper/{key}"

    async def put(self, key: str, data: bytes) -> Blob:
        self._step("put", key)
        self.data[key] = data
        return Blob(uri=self.uri(key), sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))

    async def put_file(self, key: str, path: Path) -> Blob:
        return await self.put(key, path.read_bytes())

    async def get(self, blob: Blob | str) -> bytes:
        key = (blob if isinstance(blob, str) else blob.uri).removeprefix("s3://sandpiper/")
        if key not in self.data:
            raise MissingObject(key)
        data = self.data[key]
        if isinstance(blob, Blob) and blob.sha256 and hashlib.sha256(data).hexdigest() != blob.sha256:
            raise CorruptObject(key)
        return data

    async def get_to_file(self, blob: Blob | str, path: Path) -> None:
        self._step("get", path.name)
        path.write_bytes(await self.get(blob))

    async def list(self, prefix: str) -> list[str]:
        return sorted(key for key in self.data if key.startswith(prefix))

    async def delete(self, key: str) -> None:
        self._step("delete", key)
        self.data.pop(key, None)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "config.json").write_text("{}")
    (folder / "zz_last_by_name.json").write_text("{}")
    return folder


def manifest(version: int = 3) -> PolicyManifest:
    probe = Probe(prompt_ids=[1, 2], logprobs=[-0.5], tolerance=0.1)
    return PolicyManifest(
        run_id="run-1", version=version, step=3, base="starter", probe=probe, created_at=1.0
    )


async def test_the_manifest_is_written_last(weights: Path) -> None:
    store = MemoryStore()
    blob = await policies.publish(store, manifest(), weights)
    assert blob.uri == "s3://sandpiper/policies/run-1/3/manifest.json"
    assert [key.rsplit("/", 1)[1] for _, key in store.log] == [
        "config.json",
        "model.safetensors",
        "zz_last_by_name.json",
        "manifest.json",
    ]


@pytest.mark.parametrize("step", range(4))
async def test_whatever_fails_no_manifest_names_a_missing_file(weights: Path, step: int) -> None:
    store = MemoryStore()
    store.fail_at = step
    with pytest.raises(StoreUnavailable):
        await policies.publish(store, manifest(), weights)
    assert await policies.versions(store, "run-1") == []


async def test_round_trip(weights: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    blob = await policies.publish(store, manifest(), weights)
    fetched = await policies.fetch(store, blob, tmp_path / "out")
    assert fetched.weights_sha256 == hashlib.sha256(b"weights").hexdigest()
    assert fetched.probe == manifest().probe
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["config.json", "manifest.json", "model.safetensors", "zz_last_by_name.json"]
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == b"weights"


async def test_fetch_takes_only_what_differs(weights: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    blob = await policies.publish(store, manifest(), weights)
    await policies.fetch(store, blob, tmp_path / "out")
    (tmp_path / "out" / "config.json").write_text("[]")  # same size, other bytes
    store.log.clear()
    await policies.fetch(store, blob, tmp_path / "out")
    assert store.log == [("get", "config.json")]
    assert (tmp_path / "out" / "config.json").read_text() == "{}"


async def test_a_file_that_changed_in_the_store_is_refused(weights: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    blob = await policies.publish(store, manifest(), weights)
    store.data["policies/run-1/3/model.safetensors"] = b"WEIGHTS"
    with pytest.raises(CorruptObject):
        await policies.fetch(store, blob, tmp_path / "out")
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize("raw", [b"", b"{}", b"not json", b'{"run_id": "r", "version": 1, "surprise": 1}'])
async def test_what_is_no_manifest_is_refused(raw: bytes) -> None:
    store = MemoryStore()
    blob = await store.put("m", raw)
    with pytest.raises(CorruptObject):
        await policies.load_manifest(store, blob)


async def test_a_manifest_that_contradicts_its_files_is_refused(weights: Path) -> None:
    store = MemoryStore()
    blob = await policies.publish(store, manifest(), weights)
    raw = (await store.get(blob)).replace(hashlib.sha256(b"weights").hexdigest().encode(), b"0" * 64, 1)
    changed = await store.put("m", raw)
    with pytest.raises(CorruptObject):
        await policies.load_manifest(store, changed)


@pytest.mark.parametrize("name", ["../evil", "a/b", ".hidden", "manifest.json", ""])
def test_file_names_cannot_leave_the_folder(name: str) -> None:
    file = {"uri": "s3://sandpiper/x", "sha256": "0" * 64, "bytes": 1}
    with pytest.raises(ValueError, match="plain file name"):
        PolicyManifest.model_validate({"run_id": "r", "version": 1, "files": {name: file}})


async def test_a_folder_without_weights_is_not_published(tmp_path: Path) -> None:
    store = MemoryStore()
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="safetensors"):
        await policies.publish(store, manifest(), tmp_path)
    assert await policies.versions(store, "run-1") == []


async def test_shards_have_one_digest_that_depends_on_each() -> None:
    def files(second: str) -> dict[str, policies.PolicyFile]:
        return {
            name: policies.PolicyFile(uri="u", sha256=digest * 64, bytes=1)
            for name, digest in (("a.safetensors", "0"), ("b.safetensors", second), ("config.json", "9"))
        }

    assert policies.weights_digest(files("1")) != policies.weights_digest(files("2"))
    assert len(policies.weights_digest(files("1"))) == 64


async def test_prune_keeps_the_first_the_newest_and_the_protected(weights: Path) -> None:
    store = MemoryStore()
    for version in (0, 1, 2, 3, 10):
        await policies.publish(store, manifest(version), weights)
    await policies.publish(store, manifest(1).model_copy(update={"run_id": "run-10"}), weights)
    store.log.clear()
    await policies.pin(store, "run-1", 1, "run-eval")
    store.log.clear()
    assert await policies.prune(store, "run-1", keep=2) == [2]
    assert await policies.versions(store, "run-1") == [0, 1, 3, 10]
    assert await policies.versions(store, "run-10") == [1]
    assert store.log[0] == ("delete", "policies/run-1/2/manifest.json")
    assert await store.list("policies/run-1/2/") == []


async def test_prune_always_keeps_the_newest(weights: Path) -> None:
    store = MemoryStore()
    for version in (0, 1, 2):
        await policies.publish(store, manifest(version), weights)
    assert await policies.prune(store, "run-1", keep=0) == [1]
