"""The client: retries are safe, pages are followed, downloads are verified, uploads are packed alike."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard

from sandpiper.cli import client as client_module
from sandpiper.cli.client import SandpiperClient
from sandpiper.cli.errors import ApiError, BadInput, Damaged, Unreachable, WaitTimeout
from sandpiper.cli.events import parse_events
from sandpiper.cli.pack import pack
from tests.unit.cli.cli_fakes import FakeApi, page, problem, run_data


def make_task_set(folder: Path) -> Path:
    (folder / "add-1/workspace").mkdir(parents=True)
    (folder / "taskset.yaml").write_text("name: adding\n")
    (folder / "add-1/task.yaml").write_text("language: python\n")
    (folder / "add-1/workspace/solution.py").write_text("x = 1\n")
    (folder / "add-1/workspace/__pycache__").mkdir()
    (folder / "add-1/workspace/__pycache__/solution.pyc").write_bytes(b"\0")
    return folder


def names_in(data: bytes) -> list[str]:
    raw = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        return archive.getnames()


def test_a_folder_is_packed_without_caches_and_always_alike(tmp_path: Path) -> None:
    folder = make_task_set(tmp_path / "set")
    one, two = io.BytesIO(), io.BytesIO()
    pack(folder, one)
    (folder / "taskset.yaml").touch()
    pack(folder, two)
    assert one.getvalue() == two.getvalue()
    assert names_in(one.getvalue()) == ["add-1/task.yaml", "add-1/workspace/solution.py", "taskset.yaml"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder = make_task_set(tmp_path / "set")
    (folder / "add-1/passwd").symlink_to("/etc/passwd")
    with pytest.raises(BadInput, match="passwd"):
        pack(folder, io.BytesIO())


def test_submitting_sends_the_archive_and_waits_until_it_is_there(
    client: SandpiperClient, api: FakeApi, tmp_path: Path
) -> None:
    api.on("POST /v1/task-sets", httpx.Response(202, json={"id": "ts-1"}))
    api.on("GET /v1/task-sets/ts-1", problem(404, "not yet"), {"id": "ts-1", "name": "adding"})
    made = client.submit_task_set(make_task_set(tmp_path / "set"), version="2")
    assert made["name"] == "adding"
    request = api.requests[0]
    assert request.headers["content-type"] == "application/zstd"
    assert request.url.params["version"] == "2"
    assert "name" not in request.url.params
    assert "taskset.yaml" in names_in(request.content)


def test_jsonl_goes_as_it_is(client: SandpiperClient, api: FakeApi, tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"id": 1}\n')
    api.on("POST /v1/task-sets", {"id": "ts-1"})
    api.on("GET /v1/task-sets/ts-1", {"id": "ts-1"})
    client.submit_task_set(file, name="mine")
    assert api.requests[0].content == b'{"id": 1}\n'
    assert api.requests[0].headers["content-type"] == "application/x-ndjson"


@pytest.mark.parametrize("name", ["none.jsonl", "none.tar.zst", "tasks.csv"])
def test_files_that_cannot_be_uploaded(client: SandpiperClient, tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput):
        client.submit_task_set(tmp_path / name)
    with pytest.raises(BadInput, match=r"taskset\.yaml"):
        client.submit_task_set(tmp_path)


def test_a_post_is_retried_under_one_key_with_its_whole_body(
    client: SandpiperClient, api: FakeApi, tmp_path: Path
) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_bytes(b"x" * 3_000_000)
    api.on("POST /v1/task-sets", httpx.ConnectError("refused"), problem(503, "starting"), {"id": "ts-1"})
    api.on("GET /v1/task-sets/ts-1", {"id": "ts-1"})
    client.submit_task_set(file, name="mine")
    posts = [request for request in api.requests if request.method == "POST"]
    assert len(posts) == 3
    assert len({request.headers["idempotency-key"] for request in posts}) == 1
    assert [len(request.content) for request in posts] == [3_000_000] * 3


def test_two_posts_have_two_keys(client: SandpiperClient, api: FakeApi) -> None:
    api.on("POST /v1/runs", {"id": "run-1"})
    api.on("GET /v1/runs/run-1", run_data())
    client.create_run({"a": 1})
    client.create_run({"a": 1})
    keys = [r.headers["idempotency-key"] for r in api.requests if r.method == "POST"]
    assert len(set(keys)) == 2


def test_a_refusal_is_not_retried(client: SandpiperClient, api: FakeApi) -> None:
    errors = [{"message": "must be positive", "field": "a.b", "line": 3}, {"message": "no", "file": "x/y"}]
    api.on("POST /v1/runs", problem(422, "bad document", errors=errors))
    with pytest.raises(ApiError) as caught:
        client.create_run({})
    assert len(api.requests) == 1
    assert caught.value.status == 422
    assert str(caught.value).splitlines() == [
        "bad document (HTTP 422)",
        "  line 3: a.b: must be positive",
        "  x/y: no",
    ]


def test_nothing_there_is_unreachable(api: FakeApi) -> None:
    api.on("GET /v1/executors", httpx.ConnectError("refused"))
    with SandpiperClient("http://api", retry_s=0, transport=api.transport()) as client:
        with pytest.raises(Unreachable, match="sandpiper up"):
            client.executors()
        api.on("GET /v1/executors", httpx.Response(200, text="<html>"))
        with pytest.raises(Unreachable, match="not like"):
            client.executors()
        api.on("GET /v1/executors", httpx.Response(502, text="<html>"))
        with pytest.raises(ApiError, match="Bad Gateway"):
            client.executors()


def test_the_key_is_sent(api: FakeApi) -> None:
    api.on("GET /v1/executors", {})
    with SandpiperClient("http://api/", "spk_x", transport=api.transport()) as client:
        client.executors()
    assert api.requests[0].headers["authorization"] == "Bearer spk_x"


def test_pages_are_followed_lazily(client: SandpiperClient, api: FakeApi) -> None:
    api.on("GET /v1/runs/r/episodes", page({"id": 1}, {"id": 2}, cursor="c1"), page({"id": 3}))
    found = client.episodes("r", passed=True, page=2)
    assert next(found)["id"] == 1
    assert len(api.requests) == 1
    assert [item["id"] for item in found] == [2, 3]
    first, second = (request.url.params for request in api.requests)
    assert (first["passed"], first["limit"], "cursor" in first) == ("true", "2", False)
    assert second["cursor"] == "c1"


def test_waiting_ends_with_the_run(client: SandpiperClient, api: FakeApi) -> None:
    api.on("GET /v1/runs/run-1", run_data(step=1), run_data(step=2), run_data(state="failed"))
    seen: list[int] = []
    done = client.wait_run("run-1", poll_s=0, on_progress=lambda run: seen.append(run["step"]))
    assert done["state"] == "failed"
    assert len(seen) == 3


def test_waiting_survives_a_restart_of_the_api(
    client: SandpiperClient, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module.time, "sleep", lambda _: None)
    away = [httpx.ConnectError("refused")] * 30
    monkeypatch.setattr(client._http, "_retry_s", 0)
    api.on("GET /v1/runs/run-1", *away, problem(500, "oops"), run_data(state="succeeded"))
    assert client.wait_run("run-1", poll_s=0)["state"] == "succeeded"
    api.on("GET /v1/runs/run-1", problem(404, "no run"))
    with pytest.raises(ApiError):
        client.wait_run("run-1", poll_s=0)


def test_waiting_has_a_deadline(client: SandpiperClient, api: FakeApi) -> None:
    api.on("GET /v1/runs/run-1", run_data())
    with pytest.raises(WaitTimeout, match="still running"):
        client.wait_run("run-1", timeout_s=0.01, poll_s=0.02)


def manifest(**files: bytes) -> dict[str, Any]:
    entries = {
        name: {
            "sha256": hashlib.sha256(data).hexdigest(),
            "bytes": len(data),
            "href": f"/v1/runs/r/policies/1/files/{name}",
        }
        for name, data in files.items()
    }
    known = {"run_id": "r", "version": 1, "step": 1, "base": "tiny", "dtype": "f32", "weights_sha256": "e"}
    return {**known, "created_at": 1.0, "files": entries}


def serve(api: FakeApi, files: dict[str, bytes]) -> None:
    api.on("GET /v1/policies", page({"version": 0}, {"version": 1}))
    api.on("GET /v1/runs/r/policies/1", manifest(**files))
    for name, data in files.items():
        api.on(f"GET /v1/runs/r/policies/1/files/{name}", httpx.Response(200, content=data))


FILES = {"config.json": b"{}", "model.safetensors": b"w" * 3_000_000}


def test_export_is_whole_and_says_where_it_is_from(
    client: SandpiperClient, api: FakeApi, tmp_path: Path
) -> None:
    serve(api, FILES)
    out = client.export_policy("r", tmp_path / "deep/policy")
    assert {path.name for path in out.iterdir()} == {*FILES, "sandpiper.json"}
    assert (out / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert json.loads((out / "sandpiper.json").read_text())["version"] == 1
    with pytest.raises(BadInput, match="exists"):
        client.export_policy("r", out)


@pytest.mark.parametrize("damage", ["other bytes", "cut", "gone", "traversal"])
def test_a_bad_export_leaves_nothing(
    client: SandpiperClient, api: FakeApi, tmp_path: Path, damage: str
) -> None:
    serve(api, FILES)
    weights = "GET /v1/runs/r/policies/1/files/model.safetensors"
    if damage == "other bytes":
        api.on(weights, httpx.Response(200, content=b"v" * 3_000_000))
    elif damage == "cut":
        api.on(weights, httpx.Response(200, content=b"w" * 2_999_999))
    elif damage == "gone":
        api.on(weights, problem(410, "gone"))
    else:
        evil = manifest(**{"../evil": b"x"})
        api.on("GET /v1/runs/r/policies/1", evil)
    with pytest.raises((Damaged, ApiError)):
        client.export_policy("r", tmp_path / "policy", 1)
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_versions_cannot_be_exported(
    client: SandpiperClient, api: FakeApi, tmp_path: Path
) -> None:
    api.on("GET /v1/policies", page())
    with pytest.raises(ApiError, match="no policy yet"):
        client.export_policy("r", tmp_path / "policy")


def test_events_are_parsed() -> None:
    lines = [": beat", "", "id: e-1", "event: run", 'data: {"a":', "data: 1}", "", "event: cut", "data: {}"]
    (only,) = parse_events(lines)
    assert (only.kind, only.data, only.id) == ("run", {"a": 1}, "e-1")


def test_events_come_from_the_stream(client: SandpiperClient, api: FakeApi) -> None:
    text = 'event: snapshot\ndata: {"id": "r"}\n\n: beat\n\nid: e-2\nevent: end\ndata: {}\n\n'
    api.on("GET /v1/runs/r/events", httpx.Response(200, text=text))
    assert [event.kind for event in client.events("r", "e-1")] == ["snapshot", "end"]
    assert api.requests[0].headers["last-event-id"] == "e-1"
    api.on("GET /v1/runs/r/events", problem(404, "no run r"))
    with pytest.raises(ApiError, match="no run r"):
        list(client.events("r"))
