"""The object store module against a real S3 server (the embedded one)."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from sandpiper.store.objects import (
    CorruptObject,
    MissingObject,
    ObjectSettings,
    ObjectStore,
    StoreRefused,
)
from sandpiper.store.results import ResultStore
from sandpiper.store.snapshots import get_snapshot, put_snapshot
from sandpiper.v1.common_pb2 import Blob
from tests.stack import RunningStack


async def test_put_then_get_returns_the_bytes_and_their_digest(objects: ObjectStore) -> None:
    blob = await objects.put("conformance/a/b.txt", b"hello")
    assert blob == Blob(
        uri="s3://sandpiper/conformance/a/b.txt", sha256=hashlib.sha256(b"hello").hexdigest(), bytes=5
    )
    assert await objects.get(blob) == b"hello"
    assert await objects.get(blob.uri) == b"hello"
    assert await objects.read("conformance/a/b.txt") == b"hello"


async def test_put_replaces(objects: ObjectStore) -> None:
    await objects.put("conformance/replaced", b"longer first value")
    await objects.put("conformance/replaced", b"second")
    assert await objects.read("conformance/replaced") == b"second"


async def test_empty_object(objects: ObjectStore) -> None:
    blob = await objects.put("conformance/empty", b"")
    assert await objects.exists("conformance/empty")
    assert await objects.get(blob) == b""


@pytest.mark.parametrize("name", ["space in name", "ünïcode-✓", "plus+and&and=%41", "dots..two", "a" * 200])
async def test_unusual_names(objects: ObjectStore, name: str) -> None:
    key = f"conformance/names/{name}"
    await objects.put(key, name.encode())
    assert await objects.read(key) == name.encode()
    assert key in await objects.list("conformance/names/")


async def test_absent(objects: ObjectStore) -> None:
    assert await objects.read("conformance/absent") is None
    assert not await objects.exists("conformance/absent")
    assert await objects.list("conformance/absent") == []
    await objects.delete("conformance/absent")
    with pytest.raises(MissingObject):
        await objects.get("s3://sandpiper/conformance/absent")


async def test_a_folder_is_not_an_object(objects: ObjectStore) -> None:
    await objects.put("conformance/folder/leaf", b"x")
    assert not await objects.exists("conformance/folder")
    assert await objects.read("conformance/folder") is None


async def test_delete(objects: ObjectStore) -> None:
    await objects.put("conformance/deleted", b"x")
    await objects.delete("conformance/deleted")
    assert not await objects.exists("conformance/deleted")


async def test_list_is_recursive_sorted_and_by_prefix(objects: ObjectStore) -> None:
    for key in ("c/2", "c/1", "c/d/e/f", "cc"):
        await objects.put(f"listing/{key}", b"x")
    assert await objects.list("listing/c/") == ["listing/c/1", "listing/c/2", "listing/c/d/e/f"]
    assert await objects.list("listing/c") == ["listing/c/1", "listing/c/2", "listing/c/d/e/f", "listing/cc"]


async def test_more_keys_than_one_page(objects: ObjectStore) -> None:
    await asyncio.gather(*(objects.put(f"pages/{number:04}", b"x") for number in range(1100)))
    assert await objects.list("pages/") == [f"pages/{number:04}" for number in range(1100)]


async def test_parallel_puts_and_gets_do_not_mix(objects: ObjectStore) -> None:
    contents = [os.urandom(1 + 997 * number) for number in range(100)]
    blobs = await asyncio.gather(*(objects.put(f"mix/{i}", data) for i, data in enumerate(contents)))
    assert await asyncio.gather(*(objects.get(blob) for blob in blobs)) == contents


async def test_same_digest_from_many_writers_at_once(objects: ObjectStore) -> None:
    data = os.urandom(200_000)
    blobs = await asyncio.gather(*(objects.put_by_digest("many", data, ".bin") for _ in range(20)))
    assert len({blob.uri for blob in blobs}) == 1
    assert blobs[0].uri.endswith(f"/many/{blobs[0].sha256}.bin")
    assert await objects.get(blobs[0]) == data


async def test_put_by_digest_repairs_an_object_of_another_size(objects: ObjectStore) -> None:
    data = b"whole and sound"
    blob = await objects.put_by_digest("repaired", data)
    await objects.put(objects.key(blob.uri), data[:4])
    await objects.put_by_digest("repaired", data)
    assert await objects.get(blob) == data


async def test_large_file_round_trip(objects: ObjectStore, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "deep" / "target"
    with source.open("wb") as file:
        for _ in range(41):
            file.write(os.urandom(1 << 20))
        file.write(b"odd end")
    blob = await objects.put_file("conformance/large", source)
    assert blob.bytes == (41 << 20) + 7
    await objects.get_to_file(blob, target)
    with source.open("rb") as a, target.open("rb") as b:
        assert hashlib.file_digest(a, "sha256").digest() == hashlib.file_digest(b, "sha256").digest()
    assert [path.name for path in target.parent.iterdir()] == ["target"]
    await objects.delete("conformance/large")


async def test_corruption_is_found(objects: ObjectStore, tmp_path: Path) -> None:
    blob = await objects.put("conformance/corrupt", b"as written")
    await objects.put("conformance/corrupt", b"as changed")
    with pytest.raises(CorruptObject):
        await objects.get(blob)
    target = tmp_path / "target"
    target.write_bytes(b"what was there")
    with pytest.raises(CorruptObject):
        await objects.get_to_file(blob, target)
    assert target.read_bytes() == b"what was there"
    assert list(tmp_path.iterdir()) == [target]


async def test_other_buckets_are_not_ours(objects: ObjectStore) -> None:
    for uri in ("s3://elsewhere/x", "s3://sandpiper/", "file:///etc/passwd", ""):
        with pytest.raises(ValueError, match="not an object of bucket"):
            await objects.get(uri)


async def test_wrong_keys_are_refused_at_once(infra: RunningStack) -> None:
    settings = infra.objects.model_dump() | {"secret_key": "not-the-secret-key"}
    store = ObjectStore(ObjectSettings.model_validate(settings))
    try:
        async with asyncio.timeout(5):
            with pytest.raises(StoreRefused):
                await store.read("conformance/a/b.txt")
    finally:
        await store.close()


async def test_results_are_kept_per_service(objects: ObjectStore) -> None:
    executor, grader = ResultStore(objects, "sandbox-executor"), ResultStore(objects, "reward-grader")
    assert await executor.get("cmd-1") is None
    await executor.put("cmd-1", b"result")
    assert await executor.get("cmd-1") == b"result"
    assert await grader.get("cmd-1") is None
    with pytest.raises(ValueError, match="not a command id"):
        await executor.put("../escape", b"")


async def test_snapshots_by_content(objects: ObjectStore) -> None:
    archive = os.urandom(5000)
    blob = await put_snapshot(objects, archive)
    assert blob.uri == f"s3://sandpiper/snapshots/{blob.sha256}"
    assert await get_snapshot(objects, blob) == archive
    assert await get_snapshot(objects, blob.sha256) == archive
    await objects.put(f"snapshots/{blob.sha256}", b"tampered")
    with pytest.raises(CorruptObject):
        await get_snapshot(objects, blob.sha256)
