"""The queries on a real Postgres, and downloads from a real object store."""

from __future__ import annotations

import random
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from sandpiper.ids import new_id
from sandpiper.store.blobs import blob_to_json
from sandpiper.store.db.engine import Sessions
from sandpiper.store.db.models import Run, TaskSet, TrainingStepRow
from sandpiper.store.objects import ObjectStore
from sandpiper.tasks.model import Task
from sandpiper.v1.inference_pb2 import TurnTokens
from services.api.services import Services
from tests.unit.api.api_fakes import (
    attempt_row,
    episode_row,
    group_row,
    run_row,
    task_data,
    task_row,
    turn_row,
)


@pytest.fixture
async def run_id(sessions: Sessions) -> str:
    """A run with a task set of three tasks and one group."""
    ident, task_set = new_id("run"), new_id("ts")
    async with sessions.begin() as session:
        session.add(
            TaskSet(
                id=task_set,
                name=task_set,
                version="1",
                tasks_blob={},
                task_count=3,
                submitted_by="t",
                created_at=1.0,
            )
        )
        await session.flush()
        tasks = [Task.model_validate(task_data(number)) for number in range(3)]
        session.add_all(task_row(task_set, number, task) for number, task in enumerate(tasks))
        document = {"tasks": {"task_set": task_set}, "budget": {"steps": 4}}
        session.add(run_row(ident, document, 10.0, state="running", started_at=11.0))
        await session.flush()
        session.add(group_row(f"g-{ident}", ident, 0, 10.0))
    return ident


async def add_episodes(sessions: Sessions, run_id: str, times: list[float], **fields: Any) -> list[str]:
    ids = [new_id("ep") for _ in times]
    start = random.randrange(10**8)
    async with sessions.begin() as session:
        for number, (ident, at) in enumerate(zip(ids, times, strict=True)):
            session.add(episode_row(ident, run_id, f"g-{run_id}", start + number, at, **fields))
    return ids


@pytest.mark.parametrize("order", ["newest", "oldest"])
@pytest.mark.parametrize("seed", range(5))
async def test_pages_concatenate_to_the_whole_under_inserts(
    client: httpx.AsyncClient, sessions: Sessions, run_id: str, order: str, seed: int
) -> None:
    rng = random.Random(seed)
    # Few distinct times, with fractions that do not end in binary: ties are broken by id.
    moments = [1_700_000_000.1, 1_700_000_000.123456789, 1_700_000_001.7]
    before = set(await add_episodes(sessions, run_id, [rng.choice(moments) for _ in range(17)]))
    seen: list[str] = []
    cursor = None
    while True:
        query: dict[str, Any] = {"order": order, "limit": 3, **({"cursor": cursor} if cursor else {})}
        answer = await client.get(f"/v1/runs/{run_id}/episodes", params=query)
        assert answer.status_code == 200, answer.text
        seen += [item["id"] for item in answer.json()["items"]]
        cursor = answer.json()["next_cursor"]
        if cursor is None:
            break
        if len(seen) < 30:
            await add_episodes(sessions, run_id, [rng.choice(moments)])
    assert len(seen) == len(set(seen))
    assert before <= set(seen)


async def test_every_read_route_on_postgres(
    client: httpx.AsyncClient, sessions: Sessions, objects: ObjectStore, run_id: str
) -> None:
    tokens = TurnTokens(prompt_ids=[1, 2], output_ids=[3], logprobs=[-0.5], versions=[0])
    key = new_id("blob")
    token_blob = blob_to_json(await objects.put(f"tokens/{key}", tokens.SerializeToString()))
    archive = blob_to_json(await objects.put(f"snapshots/{key}", b"x" * 3_000_000))
    (ident,) = await add_episodes(
        sessions,
        run_id,
        [20.0],
        state="graded",
        reward=0.5,
        passed=True,
        snapshot=archive,
        version_min=0,
        trained_step=1,
    )
    async with sessions.begin() as session:
        session.add(attempt_row(ident, 1, 20.0))
        session.add(turn_row(ident, 0, 20.0, tokens=token_blob))
        session.add(
            TrainingStepRow(
                run_id=run_id,
                step=1,
                policy_version=1,
                metrics={"loss": 0.5},
                checkpoint=None,
                started_at=21.0,
                seconds=1.0,
                recorded_at=30.0,
            )
        )
        row = await session.get(Run, run_id)
        assert row is not None
        row.step = 1
    shown = (await client.get(f"/v1/runs/{run_id}")).json()
    assert shown["progress"]["pass_rate"] == 1.0
    assert shown["progress"]["staleness_mean"] == 0.0
    assert shown["episodes"]["graded"] == 1
    assert (await client.get(f"/v1/episodes/{ident}")).json()["turns"][0]["number"] == 0
    assert (await client.get(f"/v1/episodes/{ident}/trajectory")).json()["token_ids"] == [1, 2, 3]
    assert (await client.get(f"/v1/episodes/{ident}/snapshot")).content == b"x" * 3_000_000
    only = (await client.get(f"/v1/runs/{run_id}/episodes?passed=true&trained_step=1&state=graded")).json()
    assert [item["id"] for item in only["items"]] == [ident]
    task_set = shown["task_set_id"]
    assert (await client.get(f"/v1/task-sets/{task_set}")).json()["splits"] == {"train": 3}
    first = (await client.get(f"/v1/task-sets/{task_set}/tasks?limit=2")).json()
    rest = await client.get(f"/v1/task-sets/{task_set}/tasks", params={"cursor": first["next_cursor"]})
    assert [item["position"] for item in first["items"] + rest.json()["items"]] == [0, 1, 2]
    for path in ("/v1/runs", "/v1/task-sets", f"/v1/runs/{run_id}/steps", f"/v1/policies?run={run_id}"):
        assert (await client.get(path)).status_code == 200, path


async def test_the_api_cannot_write(services: Services) -> None:
    async with services.sessions() as session:
        with pytest.raises(DBAPIError, match="read-only"):
            await session.execute(text("DELETE FROM runs"))


async def test_extreme_numbers_are_answered(client: httpx.AsyncClient, run_id: str) -> None:
    for query in ("trained_step=2147483647", "task=x", "group=x"):
        answer = await client.get(f"/v1/runs/{run_id}/episodes?{query}")
        assert answer.json() == {"items": [], "next_cursor": None}
    assert (await client.get(f"/v1/runs/{run_id}/policies/2147483647")).status_code == 404
    assert (await client.get(f"/v1/runs/{run_id}/policies/2147483648")).status_code == 422
