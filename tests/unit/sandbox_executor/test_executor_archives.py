"""Archives between sandbox and store."""

from __future__ import annotations

import pytest
import zstandard

from sandpiper.store.errors import CorruptObject, MissingObject
from services.sandbox_executor import archives
from services.sandbox_executor.archives import Archives
from tests.unit.sandbox_executor.executor_fakes import FakeObjects


def test_round_trip_and_determinism() -> None:
    tar = b"abc" * 10_000
    assert archives.pack(tar) == archives.pack(tar)
    assert archives.unpack(archives.pack(tar), len(tar)) == tar


def test_a_plain_tar_passes() -> None:
    assert archives.unpack(b"plain", 10) == b"plain"


@pytest.mark.parametrize(
    "data",
    [archives.pack(bytes(1 << 20)), bytes(101), archives.pack(b"x" * 50)[:-4], b"\x28\xb5\x2f\xfdgarbage"],
)
def test_bombs_and_damage_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptObject):
        archives.unpack(data, 100)


def test_frames_without_a_size_are_bounded_too() -> None:
    compressor = zstandard.ZstdCompressor().compressobj()
    data = compressor.compress(bytes(1 << 20)) + compressor.flush()
    with pytest.raises(CorruptObject):
        archives.unpack(data, 1000)


async def test_what_was_stored_is_not_fetched_again_until_it_falls_out() -> None:
    objects = FakeObjects()
    kept = Archives(objects, cache_bytes=60)  # type: ignore[arg-type]
    first = await kept.store(b"one")
    objects.data.clear()
    assert await kept.fetch(first, 10) == b"one"
    for word in (b"two", b"three", b"four", b"five"):
        await kept.store(word)
    with pytest.raises(MissingObject):
        await kept.fetch(first, 10)
