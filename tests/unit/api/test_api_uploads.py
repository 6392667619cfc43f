"""Task-set uploads: both forms, every refusal names its place, and a refusal stores nothing."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from typing import Any

import httpx
import pytest
import zstandard

from sandpiper.tasks.archive import archive_task_set
from sandpiper.tasks.model import Task
from sandpiper.tasks.taskset import TaskSetInfo
from services.api.services import Services
from services.api.settings import HttpSettings, UploadSettings
from tests.unit.api.api_fakes import (
    FakeOrchestrator,
    MemoryObjects,
    client_of,
    jsonl,
    make_services,
    task_data,
)

NDJSON = {"content-type": "application/x-ndjson"}
ZSTD = {"content-type": "application/zstd"}


def archive(*tasks: dict[str, Any]) -> bytes:
    return archive_task_set(
        TaskSetInfo(name="adding", version="2"), [Task.model_validate(task) for task in tasks]
    )


def tar_zst(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return zstandard.ZstdCompressor().compress(buffer.getvalue())


async def test_jsonl_is_stored_normalised_and_announced(
    client: httpx.AsyncClient, objects: MemoryObjects, orchestrator: FakeOrchestrator
) -> None:
    body = jsonl(task_data(1), task_data(2))
    answer = await client.post("/v1/task-sets?name=adding&version=3", content=body, headers=NDJSON)
    assert answer.status_code == 201
    made = answer.json()
    assert (made["name"], made["version"], made["task_count"]) == ("adding", "3", 2)
    assert answer.headers["location"] == f"/v1/task-sets/{made['id']}"
    (out,) = orchestrator.sent
    blob = out.message.tasks  # type: ignore[attr-defined]
    lines = zstandard.decompress(await objects.get(blob), max_output_size=1 << 20).splitlines()
    assert [Task.model_validate_json(line).id for line in lines] == ["add-1", "add-2"]


async def test_archive_brings_its_name_and_version(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/task-sets", content=archive(task_data(1)), headers=ZSTD)
    assert answer.status_code == 201
    assert (answer.json()["name"], answer.json()["version"]) == ("adding", "2")


async def test_query_overrules_the_archive(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/task-sets?name=other", content=archive(task_data(1)), headers=ZSTD)
    assert (answer.json()["name"], answer.json()["version"]) == ("other", "2")


async def test_tasks_are_shown_without_secrets(client: httpx.AsyncClient, task_set: dict[str, Any]) -> None:
    answer = await client.get(f"/v1/task-sets/{task_set['id']}/tasks")
    items = answer.json()["items"]
    assert [item["id"] for item in items] == ["add-1", "add-2", "add-3", "add-4"]
    assert "HIDDEN" not in answer.text
    assert all("reference" not in item["spec"] and "hidden" not in item["spec"] for item in items)
    heldout = await client.get("/v1/task-sets/adding/tasks?split=heldout")
    assert [item["id"] for item in heldout.json()["items"]] == ["add-3", "add-4"]


async def test_detail_counts_what_is_in_it(client: httpx.AsyncClient, task_set: dict[str, Any]) -> None:
    found = (await client.get("/v1/task-sets/adding@1")).json()
    assert found["id"] == task_set["id"]
    assert found["splits"] == {"heldout": 2, "train": 2}
    assert found["languages"] == {"python": 4}


async def test_the_same_upload_twice_is_one_task_set(
    client: httpx.AsyncClient, orchestrator: FakeOrchestrator
) -> None:
    first = await client.post("/v1/task-sets?name=a", content=jsonl(task_data()), headers=NDJSON)
    again = await client.post("/v1/task-sets?name=a", content=jsonl(task_data()), headers=NDJSON)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert len(orchestrator.sent) == 1


async def test_other_tasks_under_one_version_are_refused(client: httpx.AsyncClient) -> None:
    await client.post("/v1/task-sets?name=a", content=jsonl(task_data(1)), headers=NDJSON)
    answer = await client.post("/v1/task-sets?name=a", content=jsonl(task_data(2)), headers=NDJSON)
    assert answer.status_code == 409
    assert "choose another version" in answer.json()["detail"]


async def test_not_materialised_in_time_is_202(
    client: httpx.AsyncClient, orchestrator: FakeOrchestrator
) -> None:
    orchestrator.asleep = True
    answer = await client.post("/v1/task-sets?name=a", content=jsonl(task_data()), headers=NDJSON)
    assert answer.status_code == 202
    assert answer.json()["location"] == answer.headers["location"]


BAD_LINES = [
    (b"{not json\n", 2, None),
    (json.dumps(task_data(2, language="cobol")).encode() + b"\n", 2, "language"),
    (json.dumps(task_data(2, limits={"wall_s": -1})).encode() + b"\n", 2, "limits.wall_s"),
    (json.dumps(task_data(2, surprise=1)).encode() + b"\n", 2, "surprise"),
    (json.dumps(task_data(1)).encode() + b"\n", 2, "id"),
    (b'{"id": "x", "limits": {"wall_s": NaN}}\n', 2, "limits.wall_s"),
]


@pytest.mark.parametrize(("line", "number", "field"), BAD_LINES)
async def test_a_bad_line_is_named_and_nothing_is_stored(
    client: httpx.AsyncClient,
    objects: MemoryObjects,
    orchestrator: FakeOrchestrator,
    line: bytes,
    number: int,
    field: str | None,
) -> None:
    body = jsonl(task_data(1)) + line + jsonl(task_data(3))
    answer = await client.post("/v1/task-sets?name=a", content=body, headers=NDJSON)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == "urn:sandpiper:problem:invalid-task-set"
    assert f"line {number}" in problem["detail"]
    assert {item["line"] for item in problem["errors"]} == {number}
    if field is not None:
        assert field in {item.get("field") for item in problem["errors"]}
    assert not objects.stored
    assert not orchestrator.sent


async def test_every_bad_line_is_reported(client: httpx.AsyncClient) -> None:
    body = b"{\n" + jsonl(task_data(1)) + b"[]\n"
    answer = await client.post("/v1/task-sets?name=a", content=body, headers=NDJSON)
    assert [item["line"] for item in answer.json()["errors"]] == [1, 3]


async def test_nul_characters_are_refused_with_their_field(client: httpx.AsyncClient) -> None:
    body = jsonl(task_data(1, instruction="a\0b"))
    answer = await client.post("/v1/task-sets?name=a", content=body, headers=NDJSON)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "instruction"
    # The escape as text is no NUL.
    body = jsonl(task_data(1, instruction="write \\u0000"))
    answer = await client.post("/v1/task-sets?name=a", content=body, headers=NDJSON)
    assert answer.status_code == 201


async def test_a_bad_file_in_an_archive_is_named(client: httpx.AsyncClient, objects: MemoryObjects) -> None:
    files = {
        "taskset.yaml": b"name: adding\n",
        "add-1/task.yaml": b"language: python\nfamily: add\nlimits: {wall_s: -2}\n",
        "add-1/instruction.md": b"Write add",
        "add-1/workspace/solution.py": b"",
        "add-1/solution/solution.py": b"x = 1",
        "add-1/tests/visible/test_v.py": b"x",
        "add-1/tests/hidden/test_h.py": b"x",
    }
    body = tar_zst([(tarfile.TarInfo(path), data) for path, data in files.items()])
    answer = await client.post("/v1/task-sets", content=body, headers=ZSTD)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["file"], error["field"]) == ("add-1/task.yaml", "limits.wall_s")
    assert not objects.stored


def _link(kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo("add-1/workspace/x")
    info.type, info.linkname = kind, "/etc/passwd"
    return info


@pytest.mark.parametrize(
    "member",
    [
        tarfile.TarInfo("../evil.py"),
        tarfile.TarInfo("/etc/evil.py"),
        tarfile.TarInfo("add-1/workspace/../../../evil.py"),
        _link(tarfile.SYMTYPE),
        _link(tarfile.LNKTYPE),
        _link(tarfile.CHRTYPE),
    ],
    ids=["climbs", "absolute", "climbs-inside", "symlink", "hardlink", "device"],
)
async def test_hostile_archive_members_are_refused(
    client: httpx.AsyncClient, objects: MemoryObjects, member: tarfile.TarInfo
) -> None:
    body = tar_zst([(tarfile.TarInfo("taskset.yaml"), b"name: x"), (member, b"")])
    answer = await client.post("/v1/task-sets", content=body, headers=ZSTD)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["file"].endswith(member.name.removeprefix("./"))
    assert not objects.stored


async def test_a_bomb_is_refused_without_being_unpacked(
    services: Services, sessions: Any, tmp_path: Any
) -> None:
    limits = UploadSettings(max_expanded_bytes=1 << 20)
    bounded = make_services(sessions, tmp_path, HttpSettings(uploads=limits))
    bomb = tar_zst([(tarfile.TarInfo("add-1/workspace/zeros"), bytes(64 << 20))])
    assert len(bomb) < 1 << 16
    async with client_of(bounded) as client:
        answer = await client.post("/v1/task-sets", content=bomb, headers=ZSTD)
    assert answer.status_code == 422
    assert "bytes" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("limits", "status"),
    [({"max_bytes": 100}, 413), ({"max_tasks": 1}, 422), ({"max_expanded_bytes": 1000}, 422)],
)
async def test_limits_of_a_jsonl_upload(
    sessions: Any, tmp_path: Any, limits: dict[str, int], status: int
) -> None:
    bounded = make_services(sessions, tmp_path, HttpSettings(uploads=UploadSettings(**limits)))
    body = jsonl(task_data(1), task_data(2))

    async def chunks() -> Any:  # no Content-Length: the bytes themselves are counted
        for start in range(0, len(body), 50):
            yield body[start : start + 50]

    async with client_of(bounded) as client:
        answer = await client.post("/v1/task-sets?name=a", content=chunks(), headers=NDJSON)
        declared = await client.post("/v1/task-sets?name=a", content=body, headers=NDJSON)
    assert answer.status_code == declared.status_code == status
    assert not bounded.objects.stored  # type: ignore[attr-defined]
    assert not list(tmp_path.rglob("*")), "a spooled upload was left behind"


async def test_a_silent_client_is_let_go(sessions: Any, tmp_path: Any) -> None:
    bounded = make_services(sessions, tmp_path, HttpSettings(uploads=UploadSettings(idle_s=0.05)))

    async def chunks() -> Any:
        yield b"{"
        await asyncio.sleep(5)
        yield b"}"

    async with client_of(bounded) as client:
        answer = await client.post("/v1/task-sets?name=a", content=chunks(), headers=NDJSON)
    assert answer.status_code == 408


@pytest.mark.parametrize(
    ("query", "headers", "body", "status", "needle"),
    [
        ("", NDJSON, b"{}", 422, "name"),
        ("?name=UPPER", NDJSON, b"{}", 422, "name"),
        ("?name=a", {"content-type": "text/csv"}, b"{}", 415, "application/x-ndjson"),
        ("?name=a", {}, b"{}", 415, "Content-Type"),
        ("?name=a", NDJSON, b"", 422, "empty"),
        ("?name=a", NDJSON, b"\n\n", 422, "no task"),
        ("", ZSTD, b"not zstd", 422, "zstd"),
        ("?name=a", NDJSON, b'{"a":' * 100_000, 422, "line 1"),
    ],
)
async def test_refusals(
    client: httpx.AsyncClient, query: str, headers: dict[str, str], body: bytes, status: int, needle: str
) -> None:
    answer = await client.post(f"/v1/task-sets{query}", content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert needle in answer.text


async def test_a_store_that_is_down_announces_nothing(
    client: httpx.AsyncClient, objects: MemoryObjects, orchestrator: FakeOrchestrator
) -> None:
    objects.down = True
    answer = await client.post("/v1/task-sets?name=a", content=jsonl(task_data()), headers=NDJSON)
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert not orchestrator.sent


@pytest.mark.parametrize(
    "text",
    [
        b"a: 2001-99-99\n",
        b"[" * 2_000_000,
        b"a: &a [x, x, x]\nb: &b [*a, *a, *a]\nlimits: [*b, *b, *b]\n",
        b"language: {}\n",
        b"language: [python]\n",
        b"? [1]\n: 2\n",
        b"\xff\xfe",
        b"a: 1\n--- \nb: 2\n",
        b"!!python/object/apply:os.getcwd []\n",
        b"{<<: 1}\n",
        b"language: python\nstop: 3\n",
        b"a: !!int x\n",
        b"a: " + b"9" * 10_000 + b"\n",
        b"",
    ],
    ids=range(14),
)
async def test_hostile_yaml_is_a_422(client: httpx.AsyncClient, objects: MemoryObjects, text: bytes) -> None:
    for broken in ("taskset.yaml", "add-1/task.yaml"):
        files = {"taskset.yaml": b"name: x\n", "add-1/instruction.md": b"do", broken: text}
        body = tar_zst([(tarfile.TarInfo(path), data) for path, data in files.items()])
        answer = await client.post("/v1/task-sets", content=body, headers=ZSTD)
        assert answer.status_code == 422, answer.text
        assert not objects.stored
