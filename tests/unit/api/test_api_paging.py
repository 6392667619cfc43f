"""Cursors: pages concatenate to the whole, whatever is inserted between them; foreign cursors are refused."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from sandpiper.store.db.engine import Sessions
from sandpiper.store.db.models import Episode
from services.api.paging import decode_cursor, encode_cursor, fetch_page, scope_of
from services.api.problems import ProblemError
from tests.unit.api.api_fakes import episode_row, group_row, make_database, run_row

TIMES = st.sampled_from([1.0, 1.5, 2.0, 1_700_000_000.123456])


def add(number: int, at: float) -> Episode:
    return episode_row(f"e{number:04}", "run", "g", number, at)


async def read_all(
    sessions: Sessions, descending: bool, limit: int, inserts: list[list[float]]
) -> tuple[list[str], set[str]]:
    """Ids in the order of the pages, with `inserts` between them; and the ids that were there at first."""
    async with sessions() as session:
        first = set((await session.scalars(select(Episode.id))).all())
    number, cursor, seen = 1000, None, []
    while True:
        async with sessions() as session:
            rows, cursor = await fetch_page(
                session,
                select(Episode).where(Episode.run_id == "run"),
                (Episode.created_at, Episode.id),
                (float, str),
                scope="s",
                cursor=cursor,
                limit=limit,
                descending=descending,
            )
        seen += [row.id for row in rows]
        assert len(rows) <= limit
        if cursor is None:
            return seen, first
        async with sessions.begin() as session:
            for at in inserts.pop(0) if inserts else []:
                session.add(add(number, at))
                number += 1


@settings(max_examples=40, deadline=None)
@given(
    before=st.lists(TIMES, max_size=12),
    inserts=st.lists(st.lists(TIMES, max_size=3), max_size=5),
    limit=st.integers(1, 5),
    descending=st.booleans(),
)
def test_pages_concatenate_to_the_whole(
    before: list[float], inserts: list[list[float]], limit: int, descending: bool
) -> None:
    async def check() -> None:
        engine, sessions = await make_database(Path(folder))
        try:
            async with sessions.begin() as session:
                session.add(run_row("run", {"tasks": {"task_set": "t"}}, 0.0))
                session.add(group_row("g", "run", 0, 0.0))
                session.add_all(add(number, at) for number, at in enumerate(before))
            seen, first = await read_all(sessions, descending, limit, inserts)
        finally:
            await engine.dispose()
        assert len(seen) == len(set(seen)), "a row was shown twice"
        assert first <= set(seen), "a row was lost"

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check())


@given(st.floats(0, 1e10), st.text("abc-019", min_size=1), st.text("0123456789abcdef", min_size=1))
def test_cursors_round_trip(at: float, ident: str, scope: str) -> None:
    assert decode_cursor(encode_cursor(scope, [at, ident]), scope, (float, str)) == [at, ident]


@given(st.text(max_size=60))
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ProblemError) as caught:
        decode_cursor(text, "scope", (float, str))
    assert caught.value.status == 422


@pytest.mark.parametrize(
    "key",
    [
        ["x", "y"],
        [1.0],
        [1.0, "a", "b"],
        [True, "a"],
        [float("nan"), "a"],
        [1e400, "a"],
        [1.0, "a\0"],
        [None, "a"],
    ],
)
def test_a_cursor_holds_only_what_its_list_orders_by(key: list[Any]) -> None:
    with pytest.raises(ProblemError):
        decode_cursor(encode_cursor("s", key), "s", (float, str))


def test_big_integers_do_not_reach_the_database() -> None:
    with pytest.raises(ProblemError):
        decode_cursor(encode_cursor("s", [2**70]), "s", (int,))


def test_a_scope_depends_on_every_filter() -> None:
    assert scope_of(of="a", run="x") != scope_of(of="a", run="y")
    assert scope_of(of="a", x=None) != scope_of(of="a", x=False)


async def test_episodes_filter_and_order(
    client: httpx.AsyncClient, sessions: Sessions, run: dict[str, Any]
) -> None:
    async with sessions.begin() as session:
        session.add(group_row("g1", run["id"], 0, 1.0))
        session.add(group_row("g2", run["id"], 1, 1.0))
        for number in range(6):
            session.add(
                episode_row(
                    f"e{number}",
                    run["id"],
                    "g1" if number < 4 else "g2",
                    number,
                    float(number),
                    task_id="add-1" if number % 2 else "add-2",
                    state="trained" if number < 2 else "graded" if number < 4 else "queued",
                    passed=None if number >= 4 else number == 0,
                    trained_step=1 if number < 2 else None,
                )
            )

    async def ids(query: str) -> list[str]:
        answer = await client.get(f"/v1/runs/{run['id']}/episodes?{query}")
        assert answer.status_code == 200, answer.text
        return [item["id"] for item in answer.json()["items"]]

    assert await ids("") == ["e5", "e4", "e3", "e2", "e1", "e0"]
    assert await ids("order=oldest&limit=2") == ["e0", "e1"]
    assert await ids("state=trained") == ["e1", "e0"]
    assert await ids("state=trained&state=queued") == ["e5", "e4", "e1", "e0"]
    assert await ids("task=add-1") == ["e5", "e3", "e1"]
    assert await ids("passed=true") == ["e0"]
    assert await ids("passed=false") == ["e3", "e2", "e1"]
    assert await ids("trained_step=1") == ["e1", "e0"]
    assert await ids("group=g2") == ["e5", "e4"]
    assert (await client.get("/v1/runs/run-none/episodes")).status_code == 404
    assert (await client.get(f"/v1/runs/{run['id']}/episodes?task=%00")).status_code == 422
    assert (await client.get(f"/v1/runs/{run['id']}/episodes?limit=0")).status_code == 422
