"""`Idempotency-Key`: one key, one effect, one answer."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any, cast

import httpx
import pytest

from sandpiper.store.errors import StoreUnavailable
from services.api.keys import KeyRing
from services.api.services import Services
from tests.unit.api.api_fakes import (
    FakeClock,
    FakeOrchestrator,
    MemoryObjects,
    client_of,
    jsonl,
    make_services,
    task_data,
)

DOCUMENT = {"name": "once", "tasks": {"task_set": "adding"}}
KEY = {"idempotency-key": "abc-1"}


def creations(orchestrator: FakeOrchestrator) -> list[str]:
    return [out.key for out in orchestrator.sent if out.topic.name == "run.commands"]


async def test_a_retry_gets_the_first_answer(
    client: httpx.AsyncClient, task_set: Any, orchestrator: FakeOrchestrator
) -> None:
    first = await client.post("/v1/runs", json=DOCUMENT, headers=KEY)
    again = await client.post("/v1/runs", json=DOCUMENT, headers=KEY)
    assert first.status_code == again.status_code == 201
    assert first.content == again.content
    assert first.headers["location"] == again.headers["location"]
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert len(creations(orchestrator)) == 1


async def test_without_a_key_every_post_is_a_new_run(
    client: httpx.AsyncClient, task_set: Any, orchestrator: FakeOrchestrator
) -> None:
    for _ in range(2):
        await client.post("/v1/runs", json=DOCUMENT)
    assert len(set(creations(orchestrator))) == 2


async def test_another_body_under_the_same_key_is_422(client: httpx.AsyncClient, task_set: Any) -> None:
    await client.post("/v1/runs", json=DOCUMENT, headers=KEY)
    answer = await client.post("/v1/runs", json={**DOCUMENT, "seed": 1}, headers=KEY)
    assert answer.status_code == 422
    assert answer.json()["type"] == "urn:sandpiper:problem:idempotency-key-reused"


async def test_keys_of_other_routes_and_callers_are_apart(sessions: Any, tmp_path: Any) -> None:
    ring = KeyRing({name: hashlib.sha256(name.encode()).hexdigest() for name in ("anna", "ben")})
    services = make_services(sessions, tmp_path, keys=ring)
    async with client_of(services) as client:
        ids = set()
        for caller in ("anna", "ben"):
            headers = {**KEY, "authorization": f"Bearer {caller}"}
            upload = {**headers, "content-type": "application/x-ndjson"}
            made = await client.post("/v1/task-sets?name=adding", content=jsonl(task_data()), headers=upload)
            assert made.status_code < 300
            ids.add((await client.post("/v1/runs", json=DOCUMENT, headers=headers)).json()["id"])
    assert len(ids) == 2


async def test_concurrent_duplicates_have_one_effect(
    client: httpx.AsyncClient, task_set: Any, orchestrator: FakeOrchestrator
) -> None:
    answers = await asyncio.gather(*(client.post("/v1/runs", json=DOCUMENT, headers=KEY) for _ in range(5)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert len(creations(orchestrator)) == 1


async def test_a_duplicate_of_a_request_that_hangs_is_409(
    client: httpx.AsyncClient, task_set: Any, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = asyncio.Event()
    send = services.publisher.send

    async def slow(out: Any, *, timeout: float | None = None) -> None:
        await release.wait()
        await send(out, timeout=timeout)

    monkeypatch.setattr(services.publisher, "send", slow)
    monkeypatch.setattr(services.replays, "_wait_s", 0.05)
    first = asyncio.create_task(client.post("/v1/runs", json=DOCUMENT, headers=KEY))
    await asyncio.sleep(0.1)
    second = await client.post("/v1/runs", json=DOCUMENT, headers=KEY)
    assert second.status_code == 409
    release.set()
    assert (await first).status_code == 201
    assert not services.replays._turns, "a lock was kept"


async def test_a_refusal_is_not_kept(client: httpx.AsyncClient, orchestrator: FakeOrchestrator) -> None:
    assert (await client.post("/v1/runs", json=DOCUMENT, headers=KEY)).status_code == 422
    upload = {"content-type": "application/x-ndjson"}
    await client.post("/v1/task-sets?name=adding", content=jsonl(task_data()), headers=upload)
    assert (await client.post("/v1/runs", json=DOCUMENT, headers=KEY)).status_code == 201


async def test_a_crash_before_the_record_has_one_effect(
    client: httpx.AsyncClient,
    task_set: Any,
    services: Services,
    orchestrator: FakeOrchestrator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def lost(key: str, data: bytes) -> None:
        raise StoreUnavailable("just now")

    monkeypatch.setattr(services.objects, "put", lost)
    first = await client.post("/v1/runs", json=DOCUMENT, headers=KEY)
    assert first.status_code == 201
    monkeypatch.undo()
    again = await client.post("/v1/runs", json=DOCUMENT, headers=KEY)
    assert again.json()["id"] == first.json()["id"]
    ids = [out.message_id for out in orchestrator.sent if out.topic.name == "run.commands"]
    assert len(ids) == 2
    assert len(set(ids)) == 1, "the orchestrator could not tell that they are one"


async def test_a_command_is_replayed_too(client: httpx.AsyncClient, run: dict[str, Any]) -> None:
    url = f"/v1/runs/{run['id']}/cancel"
    first = await client.post(url, headers=KEY)
    again = await client.post(url, headers=KEY)
    assert first.status_code == again.status_code == 200
    assert first.content == again.content
    assert (await client.post(url)).status_code == 409


async def test_an_upload_is_replayed_and_told_apart(
    client: httpx.AsyncClient, orchestrator: FakeOrchestrator
) -> None:
    headers = {**KEY, "content-type": "application/x-ndjson"}
    first = await client.post("/v1/task-sets?name=a", content=jsonl(task_data()), headers=headers)
    again = await client.post("/v1/task-sets?name=a", content=jsonl(task_data()), headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.headers["idempotency-replayed"] == "true"
    other = await client.post("/v1/task-sets?name=b", content=jsonl(task_data()), headers=headers)
    assert other.status_code == 422
    assert len(orchestrator.sent) == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there"])
async def test_strange_keys_are_refused(client: httpx.AsyncClient, task_set: Any, key: str) -> None:
    answer = await client.post("/v1/runs", json=DOCUMENT, headers={"idempotency-key": key})
    assert answer.status_code == 422


async def test_old_answers_are_forgotten(
    client: httpx.AsyncClient, task_set: Any, services: Services, objects: MemoryObjects
) -> None:
    await client.post("/v1/runs", json=DOCUMENT, headers=KEY)
    assert await services.replays.sweep() == 0
    cast(FakeClock, services.clock).now += services.settings.idempotency_ttl_s + 10
    assert await services.replays.sweep() == 1
    assert not await objects.list("idempotency/")
