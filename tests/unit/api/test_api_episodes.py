"""One episode: details, tokens, logs, snapshots; policies and their files."""

from __future__ import annotations

import hashlib
import io
import tempfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandpiper.store.blobs import blob_to_json
from sandpiper.store.db.engine import Sessions
from sandpiper.store.db.models import Episode, PolicyVersion
from sandpiper.store.policies import PolicyFile, PolicyManifest, manifest_key
from sandpiper.v1.inference_pb2 import TurnTokens
from services.api.downloads import FileStream
from tests.unit.api.api_fakes import MemoryObjects, attempt_row, episode_row, group_row, turn_row


@pytest.fixture
async def episode(sessions: Sessions, objects: MemoryObjects, run: dict[str, Any]) -> str:
    """Two turns in the second attempt; the first attempt failed in its first turn."""
    first = TurnTokens(prompt_ids=[1, 2, 3], output_ids=[4, 5], logprobs=[-0.5, -0.25], versions=[0, 0])
    second = TurnTokens(
        prompt_ids=[1, 2, 3, 4, 5, 6], output_ids=[7], logprobs=[-1.0], versions=[1], policy_run_id=run["id"]
    )
    blobs = [
        blob_to_json(await objects.put(f"tokens/{number}", tokens.SerializeToString()))
        for number, tokens in enumerate((first, second))
    ]
    log = blob_to_json(await objects.put("logs/1", b"hello \xff\n"))
    snapshot = blob_to_json(await objects.put("snapshots/1", b"archive"))
    async with sessions.begin() as session:
        session.add(group_row("g", run["id"], 0, 1.0))
        session.add(
            episode_row(
                "ep",
                run["id"],
                "g",
                0,
                5.0,
                attempt=2,
                turn=1,
                state="graded",
                reward=1.0,
                passed=True,
                snapshot=snapshot,
                tests=[{"id": "t", "status": "passed", "kind": "", "message": "", "seconds": 0.1}],
                reward_parts=[{"name": "functional", "value": 1.0, "weight": 1.0, "explanation": "all"}],
            )
        )
        await session.flush()
        session.add(attempt_row("ep", 1, 5.0, state="failed", boundary="sandbox", reason="lost"))
        session.add(attempt_row("ep", 2, 6.0, state="done"))
        session.add(turn_row("ep", 0, 5.0, attempt=1))
        session.add(turn_row("ep", 0, 6.0, attempt=2, tokens=blobs[0], log=log, snapshot=snapshot))
        session.add(turn_row("ep", 1, 8.0, attempt=2, tokens=blobs[1]))
    return "ep"


async def test_details_have_everything(client: httpx.AsyncClient, episode: str) -> None:
    found = (await client.get(f"/v1/episodes/{episode}")).json()
    assert [(turn["attempt"], turn["number"]) for turn in found["turns"]] == [(1, 0), (2, 0), (2, 1)]
    assert [item["state"] for item in found["attempts"]] == ["failed", "done"]
    assert found["attempts"][0]["boundary"] == "sandbox"
    assert found["reward_parts"][0]["name"] == "functional"
    assert found["tests"][0]["id"] == "t"
    assert found["trace_id"] == "c" * 32
    assert [turn["has_log"] for turn in found["turns"]] == [False, True, False]
    assert found["turns"][1]["snapshot_sha256"] == hashlib.sha256(b"archive").hexdigest()


async def test_a_trajectory_is_exact(client: httpx.AsyncClient, episode: str, run: dict[str, Any]) -> None:
    found = (await client.get(f"/v1/episodes/{episode}/trajectory")).json()
    assert found["token_ids"] == [1, 2, 3, 4, 5, 6, 7]
    assert found["mask"] == [0, 0, 0, 1, 1, 0, 1]
    assert found["logprobs"] == [None, None, None, -0.5, -0.25, None, -1.0]
    assert found["versions"] == [None, None, None, 0, 0, None, 1]
    assert found["turns"] == [{"turn": 0, "start": 3, "end": 5}, {"turn": 1, "start": 6, "end": 7}]
    assert found["policy_run_id"] == run["id"]
    assert (await client.get(f"/v1/episodes/{episode}/trajectory?attempt=1")).status_code == 404


@pytest.mark.parametrize(
    "tokens",
    [
        TurnTokens(prompt_ids=[1, 9, 3, 4, 5], output_ids=[7], logprobs=[-1.0], versions=[1]),
        TurnTokens(prompt_ids=[1, 2], output_ids=[7], logprobs=[-1.0], versions=[1]),
        TurnTokens(prompt_ids=[1, 2, 3, 4, 5], output_ids=[7, 8], logprobs=[-1.0], versions=[1, 1]),
    ],
    ids=["other-prefix", "shorter", "no-logprob"],
)
async def test_a_damaged_trajectory_is_refused(
    client: httpx.AsyncClient, episode: str, sessions: Sessions, objects: MemoryObjects, tokens: TurnTokens
) -> None:
    blob = blob_to_json(await objects.put("tokens/bad", tokens.SerializeToString()))
    async with sessions.begin() as session:
        session.add(turn_row(episode, 2, 9.0, attempt=2, tokens=blob))
    answer = await client.get(f"/v1/episodes/{episode}/trajectory")
    assert answer.status_code == 502
    assert answer.json()["type"] == "urn:sandpiper:problem:corrupt-object"


async def test_logs_are_text(client: httpx.AsyncClient, episode: str) -> None:
    answer = await client.get(f"/v1/episodes/{episode}/turns/0/log")
    assert answer.text == "hello �\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert (await client.get(f"/v1/episodes/{episode}/turns/1/log")).status_code == 404
    assert (await client.get(f"/v1/episodes/{episode}/turns/9/log")).status_code == 404


async def test_snapshots_stream(
    client: httpx.AsyncClient, episode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    answer = await client.get(f"/v1/episodes/{episode}/snapshot")
    assert answer.content == b"archive"
    assert answer.headers["content-type"] == "application/zstd"
    assert answer.headers["content-length"] == "7"
    again = await client.get(
        f"/v1/episodes/{episode}/snapshot", headers={"if-none-match": answer.headers["etag"]}
    )
    assert again.status_code == 304
    assert (await client.get(f"/v1/episodes/{episode}/snapshot?turn=0")).content == b"archive"
    assert (await client.get(f"/v1/episodes/{episode}/snapshot?turn=1")).status_code == 404
    assert not list(tmp_path.glob("sandpiper-download-*")), "left behind"


async def test_what_is_no_longer_stored_is_410(
    client: httpx.AsyncClient, episode: str, objects: MemoryObjects
) -> None:
    del objects.stored["snapshots/1"]
    answer = await client.get(f"/v1/episodes/{episode}/snapshot")
    assert answer.status_code == 410
    assert answer.json()["type"] == "urn:sandpiper:problem:gone"


async def test_damaged_bytes_are_never_sent(
    client: httpx.AsyncClient, episode: str, objects: MemoryObjects
) -> None:
    objects.stored["snapshots/1"] = b"arcHive"
    answer = await client.get(f"/v1/episodes/{episode}/snapshot")
    assert answer.status_code == 502
    assert b"arcHive" not in answer.content


async def test_a_client_that_leaves_does_not_keep_the_file_open() -> None:
    file = io.BytesIO(b"x" * 10)

    async def send(message: Any) -> None:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await FileStream(file, 10, {}, "text/plain")({}, None, send)  # type: ignore[arg-type]
    assert file.closed


async def test_episodes_that_are_not_there(client: httpx.AsyncClient) -> None:
    for path in ("", "/trajectory", "/turns/0/log", "/snapshot"):
        answer = await client.get(f"/v1/episodes/nobody{path}")
        assert answer.status_code == 404, path
        assert answer.json()["title"] == "Not found"


async def test_policies(
    client: httpx.AsyncClient, sessions: Sessions, objects: MemoryObjects, run: dict[str, Any]
) -> None:
    weights = await objects.put("policies/w", b"weights")
    file = PolicyFile(uri=weights.uri, sha256=weights.sha256, bytes=weights.bytes)
    manifest = PolicyManifest(
        run_id=run["id"],
        version=1,
        step=1,
        base="tiny",
        files={"model.safetensors": file},
        weights_sha256=weights.sha256,
    )
    blob = await objects.put(manifest_key(run["id"], 1), manifest.model_dump_json().encode())
    async with sessions.begin() as session:
        session.add(
            PolicyVersion(
                run_id=run["id"],
                version=1,
                manifest=blob_to_json(blob),
                weights_sha256=weights.sha256,
                step=1,
                published_at=3.0,
            )
        )
    listed = (await client.get(f"/v1/policies?run={run['id']}")).json()
    assert [item["version"] for item in listed["items"]] == [1]
    shown = (await client.get(f"/v1/runs/{run['id']}/policies/1")).json()
    href = shown["files"]["model.safetensors"]["href"]
    got = await client.get(href)
    assert got.content == b"weights"
    assert got.headers["etag"] == f'"{weights.sha256}"'
    assert (await client.get(f"/v1/runs/{run['id']}/policies/2")).status_code == 404
    assert (await client.get(f"/v1/runs/{run['id']}/policies/1/files/none.bin")).status_code == 404
    assert (await client.get("/v1/policies?run=run-none")).status_code == 404
    await objects.delete(manifest_key(run["id"], 1))
    assert (await client.get(f"/v1/runs/{run['id']}/policies/1")).status_code == 410


async def test_json_null_columns_are_none(
    sessions: Sessions, client: httpx.AsyncClient, episode: str
) -> None:
    async with sessions.begin() as session:
        row = await session.get(Episode, episode)
        assert row is not None
        row.snapshot = None
    assert (await client.get(f"/v1/episodes/{episode}/snapshot")).status_code == 404
