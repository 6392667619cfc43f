"""Runs: documents are checked and pinned, commands are legal, progress adds up."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from sandpiper.runs import RunDocument
from sandpiper.store.db.engine import Sessions
from sandpiper.store.db.models import PolicyVersion, Run, TrainingStepRow
from services.api.services import Services
from tests.unit.api.api_fakes import FakeOrchestrator, MemoryObjects, episode_row, group_row, run_row

YAML = {"content-type": "application/yaml"}


def sent_document(orchestrator: FakeOrchestrator) -> RunDocument:
    return RunDocument.model_validate_json(orchestrator.sent[-1].message.create.document_json)  # type: ignore[attr-defined]


def version_row(run_id: str, version: int) -> PolicyVersion:
    return PolicyVersion(
        run_id=run_id,
        version=version,
        manifest={"uri": f"s3://test/policies/{run_id}/{version}/manifest.json", "sha256": "", "bytes": 1},
        weights_sha256="e" * 64,
        step=version,
        published_at=1.0 + version,
    )


async def test_json_is_checked_pinned_and_announced(
    client: httpx.AsyncClient, task_set: dict[str, Any], orchestrator: FakeOrchestrator
) -> None:
    answer = await client.post("/v1/runs", json={"name": "mine", "tasks": {"task_set": "adding@1"}})
    assert answer.status_code == 201
    made = answer.json()
    assert (made["name"], made["state"], made["task_set_id"]) == ("mine", "waiting", task_set["id"])
    assert answer.headers["location"] == f"/v1/runs/{made['id']}"
    out = orchestrator.sent[-1]
    assert (out.topic.name, out.key) == ("run.commands", made["id"])
    assert sent_document(orchestrator).tasks.task_set == task_set["id"]


async def test_yaml_is_read_too(client: httpx.AsyncClient, task_set: dict[str, Any]) -> None:
    text = "name: y\ntasks: {task_set: adding}\nalgorithm: {group_size: 4}\n"
    answer = await client.post("/v1/runs", content=text, headers=YAML)
    assert answer.status_code == 201
    detail = (await client.get(answer.headers["location"])).json()
    assert detail["document"]["algorithm"]["group_size"] == 4


@pytest.mark.parametrize(
    ("document", "field", "needle"),
    [
        ({}, "tasks", "required"),
        ({"tasks": {"task_set": "none"}}, "tasks.task_set", "no task set none"),
        ({"tasks": {"task_set": "adding", "ids": ["zz"]}}, "tasks.ids", "no task zz"),
        ({"tasks": {"task_set": "adding", "ids": ["add-3"]}}, "tasks", "selects no task"),
        ({"tasks": {"task_set": "adding"}, "surprise": 1}, "surprise", "not permitted"),
        (
            {"tasks": {"task_set": "adding"}, "algorithm": {"group_size": 0}},
            "algorithm.group_size",
            "greater",
        ),
        ({"tasks": {"task_set": "adding"}, "algorithm": {"tis_cap": "inf"}}, "algorithm.tis_cap", "finite"),
        ({"tasks": {"task_set": "adding"}, "budget": {"steps": 0}}, None, "budget.steps"),
        (
            {"tasks": {"task_set": "adding"}, "policy": {"kind": "run", "run_id": "run-x"}},
            "policy.run_id",
            "no run run-x",
        ),
        ({"tasks": {"task_set": "adding"}, "name": "a\0b"}, None, "NUL"),
        ([], None, "document"),
    ],
)
async def test_a_bad_document_is_422_with_its_field(
    client: httpx.AsyncClient,
    task_set: dict[str, Any],
    orchestrator: FakeOrchestrator,
    document: Any,
    field: str | None,
    needle: str,
) -> None:
    before = len(orchestrator.sent)
    answer = await client.post("/v1/runs", json=document)
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert needle in problem["detail"]
    if field is not None:
        assert field in {item.get("field") for item in problem["errors"]}
    assert len(orchestrator.sent) == before


@pytest.mark.parametrize(
    ("content", "kind", "status", "needle"),
    [
        (b"{", "application/json", 422, "not valid JSON"),
        (b'{"a": 1, "a": 2}', "application/json", 422, "twice"),
        (b'{"tasks": {"task_set": "\\udc80"}}', "application/json", 422, "surrogate"),
        (b"[" * 200_000, "application/json", 422, "cannot be read"),
        (b"\xff", "application/json", 422, "UTF-8"),
        (b"a: [\n", "application/yaml", 422, "not valid YAML"),
        (b"a: 1\na: 2\n", "application/yaml", 422, "twice"),
        (b"a: &x [1]\nb: *x\n", "application/yaml", 422, "aliases"),
        (b"!!python/object/apply:os.getcwd []\n", "application/yaml", 422, "YAML"),
        (b"a: 2001-99-99\n", "application/yaml", 422, "cannot be read"),
        (b"{? [1] : 2}\n", "application/yaml", 422, "plain word"),
        (b"{" * 500_000, "application/yaml", 422, "nesting depth"),
        (b"- " * 400_000, "application/yaml", 422, "nests deeper"),
        (b"x", "text/plain", 415, "application/json"),
        (b"x" * (1024 * 1024 + 1), "application/json", 413, "larger"),
    ],
)
async def test_bodies_that_are_no_documents(
    client: httpx.AsyncClient, content: bytes, kind: str, status: int, needle: str
) -> None:
    answer = await client.post("/v1/runs", content=content, headers={"content-type": kind})
    assert answer.status_code == status, answer.text
    assert needle in answer.text


async def test_the_policy_of_another_run_is_pinned(
    client: httpx.AsyncClient,
    sessions: Sessions,
    run: dict[str, Any],
    orchestrator: FakeOrchestrator,
    objects: MemoryObjects,
) -> None:
    document = {
        "mode": "eval",
        "tasks": {"task_set": "adding", "split": "heldout"},
        "policy": {"kind": "run", "run_id": run["id"]},
    }
    answer = await client.post("/v1/runs", json=document)
    assert answer.status_code == 422
    assert "no version yet" in answer.json()["detail"]
    async with sessions.begin() as session:
        session.add_all([version_row(run["id"], 0), version_row(run["id"], 3)])
    gone = await client.post("/v1/runs", json=document)
    assert gone.status_code == 422
    assert "no longer kept" in gone.json()["detail"]
    await objects.put(f"policies/{run['id']}/3/manifest.json", b"{}")
    answer = await client.post("/v1/runs", json=document)
    assert answer.status_code == 201
    assert sent_document(orchestrator).policy.version == 3
    document["policy"] = {"kind": "run", "run_id": run["id"], "version": 2}
    answer = await client.post("/v1/runs", json=document)
    assert "no version 2" in answer.json()["detail"]


LEGAL = {
    "pause": {"running"},
    "resume": {"paused"},
    "cancel": {"waiting", "running", "paused"},
}


@pytest.mark.parametrize("state", ["waiting", "running", "paused", "succeeded", "failed", "cancelled"])
@pytest.mark.parametrize("verb", ["pause", "resume", "cancel"])
async def test_commands_are_legal_or_409(
    client: httpx.AsyncClient,
    sessions: Sessions,
    run: dict[str, Any],
    orchestrator: FakeOrchestrator,
    state: str,
    verb: str,
) -> None:
    async with sessions.begin() as session:
        row = await session.get(Run, run["id"])
        assert row is not None
        row.state = state
    before = len(orchestrator.sent)
    answer = await client.post(f"/v1/runs/{run['id']}/{verb}")
    if state in LEGAL[verb]:
        assert answer.status_code == 200
        assert answer.json()["state"] == {"pause": "paused", "resume": "running", "cancel": "cancelled"}[verb]
    else:
        assert answer.status_code == 409
        assert state in answer.json()["detail"]
        assert len(orchestrator.sent) == before


async def test_commands_on_nothing(client: httpx.AsyncClient, run: dict[str, Any]) -> None:
    assert (await client.post("/v1/runs/run-none/pause")).status_code == 404
    assert (await client.post(f"/v1/runs/{run['id']}/explode")).status_code == 422
    assert (await client.delete(f"/v1/runs/{run['id']}")).status_code == 405


async def test_progress_adds_up(
    client: httpx.AsyncClient, sessions: Sessions, run: dict[str, Any], services: Services
) -> None:
    now = services.clock.time()
    ident = run["id"]
    async with sessions.begin() as session:
        row = await session.get(Run, ident)
        assert row is not None
        row.state, row.started_at, row.step, row.policy_version = "running", now - 100, 2, 2
        session.add(group_row("g", ident, 0, now))
        for number in range(10):
            graded = number < 6
            session.add(
                episode_row(
                    f"e{number}",
                    ident,
                    "g",
                    number,
                    now - 50,
                    state="trained" if number < 4 else "graded" if graded else "generating",
                    reward=(1.0 if number < 3 else -0.5) if graded else None,
                    passed=number < 3 if graded else None,
                    output_tokens=10,
                    version_min=number % 2,
                    trained_step=2 if number < 4 else None,
                )
            )
        session.add(episode_row("e10", ident, "g", 10, now - 50, state="failed"))
        for step in (1, 2):
            session.add(
                TrainingStepRow(
                    run_id=ident,
                    step=step,
                    policy_version=step,
                    metrics={"loss": 0.5},
                    checkpoint=None,
                    started_at=now - 60,
                    seconds=9.0,
                    recorded_at=now - 60 + 20 * step,
                )
            )
        session.add(version_row(ident, 0))
    found = (await client.get(f"/v1/runs/{ident}")).json()
    assert found["episodes"] == {
        "total": 11,
        "by_state": {"trained": 4, "graded": 2, "generating": 4, "failed": 1},
        "in_flight": 4,
        "graded": 6,
        "passed": 3,
        "failed": 1,
    }
    progress = found["progress"]
    assert progress["pass_rate"] == pytest.approx(0.5)
    assert progress["mean_reward"] == pytest.approx((3 - 1.5) / 6)
    # Versions 0 and 1 trained by the step that made version 2 out of version 1.
    assert progress["staleness_mean"] == pytest.approx(0.5)
    assert progress["staleness_max"] == 1
    assert progress["done"] == pytest.approx(2 / 8)
    # 20 s a step, 6 steps to go.
    assert progress["remaining_s"] == pytest.approx(120)
    assert found["steps_budget"] == 8
    assert [step["step"] for step in found["recent_steps"]] == [1, 2]
    assert found["trace_id"] == "a" * 32
    steps = (await client.get(f"/v1/runs/{ident}/steps?limit=1")).json()
    assert [step["step"] for step in steps["items"]] == [1]
    rest = (await client.get(f"/v1/runs/{ident}/steps?cursor={steps['next_cursor']}")).json()
    assert [step["step"] for step in rest["items"]] == [2]
    assert rest["next_cursor"] is None


async def test_an_evaluation_knows_what_to_expect(
    client: httpx.AsyncClient, task_set: dict[str, Any]
) -> None:
    document = {"mode": "eval", "samples_per_task": 3, "tasks": {"task_set": "adding", "split": "heldout"}}
    made = (await client.post("/v1/runs", json=document)).json()
    found = (await client.get(f"/v1/runs/{made['id']}")).json()
    assert found["progress"]["expected_episodes"] == 6
    assert found["steps_budget"] is None


async def test_lists_filter_and_page(client: httpx.AsyncClient, sessions: Sessions, task_set: Any) -> None:
    document = {"tasks": {"task_set": task_set["id"]}}
    async with sessions.begin() as session:
        for number in range(5):
            state = "running" if number % 2 else "failed"
            session.add(run_row(f"run-{number}", document, float(number // 2), state=state))
    first = (await client.get("/v1/runs?limit=3")).json()
    second = (await client.get(f"/v1/runs?limit=3&cursor={first['next_cursor']}")).json()
    ids = [item["id"] for item in first["items"] + second["items"]]
    assert ids == ["run-4", "run-3", "run-2", "run-1", "run-0"]
    running = (await client.get("/v1/runs?state=running")).json()
    assert [item["id"] for item in running["items"]] == ["run-3", "run-1"]
    strange = await client.get(f"/v1/runs?state=running&cursor={first['next_cursor']}")
    assert strange.status_code == 422
    assert strange.json()["type"].endswith("invalid-cursor")
    assert (await client.get("/v1/runs?state=nonsense")).status_code == 422


async def test_the_broker_being_away_is_503(
    client: httpx.AsyncClient, task_set: dict[str, Any], orchestrator: FakeOrchestrator
) -> None:
    orchestrator.down = True
    answer = await client.post("/v1/runs", json={"tasks": {"task_set": "adding"}})
    assert answer.status_code == 503
    assert answer.json()["type"] == "urn:sandpiper:problem:bus-unavailable"


async def test_a_run_that_does_not_appear_is_202(
    client: httpx.AsyncClient, task_set: dict[str, Any], orchestrator: FakeOrchestrator, run: dict[str, Any]
) -> None:
    orchestrator.asleep = True
    answer = await client.post("/v1/runs", json={"tasks": {"task_set": "adding"}})
    assert answer.status_code == 202
    assert json.loads(answer.text)["status"] == "accepted"
    cancelled = await client.post(f"/v1/runs/{run['id']}/cancel")
    assert cancelled.status_code == 202
