"""Retries, deadlines and error names of the object store client, against a scripted server."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from sandpiper.store import s3
from sandpiper.store.objects import (
    CorruptObject,
    MissingObject,
    ObjectSettings,
    ObjectStore,
    StoreRefused,
    StoreUnavailable,
)
from sandpiper.v1.common_pb2 import Blob
from tests.unit.store.faulty_s3 import answer, cut_off, hang, serving


@asynccontextmanager
async def client(settings: ObjectSettings) -> AsyncIterator[ObjectStore]:
    store = ObjectStore(settings, random.Random(1))
    try:
        yield store
    finally:
        await store.close()


async def test_server_errors_are_retried() -> None:
    with serving(answer(503, code="SlowDown"), answer(500), cut_off, answer(200, b"data")) as server:
        async with client(server.settings) as store:
            assert await store.read("key") == b"data"
    assert server.seen == [("GET", "/sandpiper/key")] * 4


@pytest.mark.parametrize("fault", [answer(503, code="SlowDown"), answer(500), cut_off, hang(0.7)])
async def test_a_store_that_stays_broken_is_unavailable_within_the_deadline(fault: object) -> None:
    with serving(fault) as server:  # type: ignore[arg-type]
        async with client(server.settings) as store:
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                await store.read("key")
            assert time.monotonic() - began < 2.6
    assert len(server.seen) >= 2


async def test_a_store_that_is_not_there_is_unavailable_within_the_deadline() -> None:
    with serving(answer(200)) as server:
        settings = server.settings
    async with client(settings) as store:
        began = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await store.put("key", b"data")
        assert time.monotonic() - began < 2.6


async def test_start_waits_for_a_store_that_comes_up_late() -> None:
    with serving(answer(503), answer(503), answer(200)) as server:
        async with client(server.settings) as store:
            await store.start()
    assert server.seen[-1] == ("HEAD", "/sandpiper")


async def test_start_gives_up_in_time() -> None:
    with serving(answer(503)) as server:
        settings = server.settings.model_copy(update={"start_deadline_s": 0.5})
        async with client(settings) as store:
            with pytest.raises(StoreUnavailable):
                await store.start()


@pytest.mark.parametrize("status", [400, 403])
async def test_a_refusal_is_not_retried(status: int) -> None:
    with serving(answer(status, code="AccessDenied")) as server:
        async with client(server.settings) as store:
            with pytest.raises(StoreRefused, match="AccessDenied"):
                await store.read("key")
    assert len(server.seen) == 1


async def test_a_file_is_sent_again_as_a_whole_and_digested_once_per_try(tmp_path: Path) -> None:
    data = b"0123456789" * 300_000
    (tmp_path / "file").write_bytes(data)
    with serving(answer(503, code="SlowDown"), answer(500), answer(200)) as server:
        async with client(server.settings) as store:
            blob = await store.put_file("folder/a file", tmp_path / "file")
    assert blob.sha256 == hashlib.sha256(data).hexdigest()
    assert blob.bytes == len(data)
    assert [(method, path.partition("?")[0]) for method, path in server.seen] == [
        ("PUT", "/sandpiper/folder/a%20file")
    ] * 3
    assert server.bodies == [data] * 3


async def test_a_file_longer_than_one_request_may_be_is_sent_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "ONE_REQUEST", 3)
    (tmp_path / "file").write_bytes(b"data")
    with serving(answer(200)) as server:
        async with client(server.settings) as store:
            blob = await store.put_file("key", tmp_path / "file")
    assert blob.sha256 == hashlib.sha256(b"data").hexdigest()
    assert [path for _, path in server.seen] == ["/sandpiper/key"]  # signed in headers: the client's own way


async def test_a_store_that_reads_slowly_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(32 << 20))
    with serving(answer(200)) as server:
        server.slow_s = 0.4
        settings = server.settings.model_copy(update={"connect_timeout_s": 0.1, "read_timeout_s": 5.0})
        async with client(settings) as store:
            await store.put_file("key", tmp_path / "file")
    assert len(server.seen) == 1


async def test_no_error_shows_a_signed_address(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"data")
    with serving(answer(200)) as server:
        settings = server.settings.model_copy(update={"deadline_s": 0.5})
    async with client(settings) as store:
        with pytest.raises(StoreUnavailable) as failure:
            await store.put_file("key", tmp_path / "file")
    shown = "".join(traceback.format_exception(failure.value))
    assert "X-Amz" not in shown
    assert "key: NewConnectionError while it was sent" in shown


async def test_a_refused_file_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"data")
    with serving(answer(403, code="AccessDenied")) as server:
        async with client(server.settings) as store:
            with pytest.raises(StoreRefused, match=r"403.*AccessDenied"):
                await store.put_file("key", tmp_path / "file")
    assert len(server.seen) == 1


async def test_absent_is_an_answer_not_a_failure() -> None:
    with serving(answer(404, code="NoSuchKey")) as server:
        async with client(server.settings) as store:
            assert await store.read("key") is None
            assert not await store.exists("key")
            with pytest.raises(MissingObject):
                await store.get("s3://sandpiper/key")
    assert len(server.seen) == 3


async def test_a_missing_bucket_is_not_taken_for_a_missing_object() -> None:
    with serving(answer(404, code="NoSuchBucket")) as server:
        async with client(server.settings) as store:
            with pytest.raises(StoreUnavailable, match="NoSuchBucket"):
                await store.read("key")


async def test_wrong_bytes_are_corrupt_and_right_bytes_pass() -> None:
    with serving(answer(200, b"what came back")) as server:
        async with client(server.settings) as store:
            with pytest.raises(CorruptObject):
                await store.get(Blob(uri="s3://sandpiper/key", sha256="0" * 64))
            digest = hashlib.sha256(b"what came back").hexdigest()
            assert await store.get(Blob(uri="s3://sandpiper/key", sha256=digest)) == b"what came back"


async def test_a_failed_download_leaves_no_file(tmp_path: Path) -> None:
    with serving(cut_off) as server:
        async with client(server.settings) as store:
            with pytest.raises(StoreUnavailable):
                await store.get_to_file("s3://sandpiper/key", tmp_path / "target")
    assert list(tmp_path.iterdir()) == []


async def test_put_by_digest_uploads_only_what_is_not_there() -> None:
    with serving(answer(200, b"12345")) as server:
        async with client(server.settings) as store:
            blob = await store.put_by_digest("things", b"54321", ".bin")
    assert [method for method, _ in server.seen] == ["HEAD"]
    assert blob.uri == f"s3://sandpiper/things/{hashlib.sha256(b'54321').hexdigest()}.bin"


async def test_put_by_digest_replaces_an_object_of_another_size() -> None:
    with serving(answer(200, b"123"), answer(200)) as server:
        async with client(server.settings) as store:
            await store.put_by_digest("things", b"54321")
    assert [method for method, _ in server.seen] == ["HEAD", "PUT"]


async def test_the_loop_stays_free_while_the_store_hangs() -> None:
    with serving(hang(0.4), answer(200, b"x")) as server:
        async with client(server.settings) as store:
            reading = asyncio.create_task(store.read("key"))
            ticks = 0
            while not reading.done():
                await asyncio.sleep(0.01)
                ticks += 1
            assert await reading == b"x"
    assert ticks > 20


def slowly(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(0.1)
    answer(200, b"x")(handler)


async def test_a_wide_fan_out_is_slow_but_no_outage() -> None:
    with serving(slowly) as server:
        settings = server.settings.model_copy(update={"connections": 2, "deadline_s": 0.5})
        async with client(settings) as store:
            assert await asyncio.gather(*(store.read(f"key-{number}") for number in range(30))) == [b"x"] * 30
    assert len(server.seen) == 30


async def test_a_fan_out_to_a_store_that_hangs_fails_within_two_deadlines() -> None:
    with serving(hang(0.6)) as server:
        settings = server.settings.model_copy(update={"connections": 2, "deadline_s": 0.5})
        async with client(settings) as store:
            began = time.monotonic()
            reads = (store.read(f"key-{number}") for number in range(30))
            results = await asyncio.gather(*reads, return_exceptions=True)
            assert time.monotonic() - began < 2.0
    assert [type(result) for result in results] == [StoreUnavailable] * 30


async def test_cancellation_is_prompt() -> None:
    with serving(hang(0.4)) as server:
        async with client(server.settings) as store:
            reading = asyncio.create_task(store.read("key"))
            await asyncio.sleep(0.1)
            reading.cancel()
            began = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert time.monotonic() - began < 0.2


def test_secrets_do_not_show() -> None:
    assert "s3cr3t" not in repr(ObjectSettings.model_validate({"secret_key": "s3cr3t-value"}))
