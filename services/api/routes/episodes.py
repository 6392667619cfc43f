"""Episodes: lists, details, trajectories, logs, snapshots."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse
from sqlalchemy import Select, select

from sandpiper.store.blobs import blob_from_json
from sandpiper.store.db.models import Episode
from services.api.auth import Caller
from services.api.downloads import send_blob
from services.api.paging import Page, fetch_page, scope_of
from services.api.problems import ProblemError
from services.api.reads import episodes, runs
from services.api.routes.documented import UNCHANGED, problems
from services.api.schemas.common import IDENT, MAX_NUMBER, Cursor, EpisodeId, Limit, Number, RunId
from services.api.schemas.episodes import EpisodeDetail, EpisodeSummary, TrajectoryView
from services.api.services import Using
from services.api.trajectories import assemble

router = APIRouter(prefix="/v1", tags=["episodes"])

State = Literal["queued", "generating", "executing", "grading", "graded", "trained", "discarded", "failed"]
Ident = Annotated[str | None, Query(pattern=IDENT)]
AttemptNumber = Annotated[int | None, Query(ge=1, le=MAX_NUMBER, description="Default: the newest.")]
BINARY: dict[str, Any] = {"content": {"application/zstd": {"schema": {"type": "string", "format": "binary"}}}}


@router.get("/runs/{run_id}/episodes", responses=problems(404))
async def list_episodes(
    run_id: RunId,
    services: Using,
    _: Caller,
    state: Annotated[list[State] | None, Query(description="Any of these.")] = None,
    task: Ident = None,
    group: Ident = None,
    passed: bool | None = None,
    trained_step: Annotated[int | None, Query(ge=0, le=MAX_NUMBER)] = None,
    order: Literal["newest", "oldest"] = "newest",
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[EpisodeSummary]:
    """Episodes of a run, by the time of their creation."""
    filters = {
        Episode.state: state,
        Episode.task_id: task,
        Episode.group_id: group,
        Episode.passed: passed,
        Episode.trained_step: trained_step,
    }
    named = {column.key: value for column, value in filters.items()}
    async with services.sessions() as session:
        await runs.get(session, run_id)
        rows, following = await fetch_page(
            session,
            _filtered(run_id, filters),
            (Episode.created_at, Episode.id),
            (float, str),
            scope=scope_of(of="episodes", run=run_id, order=order, **named),
            cursor=cursor,
            limit=limit,
            descending=order == "newest",
        )
    return Page(items=[EpisodeSummary.model_validate(row) for row in rows], next_cursor=following)


def _filtered(run_id: str, filters: dict[Any, Any]) -> Select[Episode]:
    query = select(Episode).where(Episode.run_id == run_id)
    for column, value in filters.items():
        if isinstance(value, list):
            query = query.where(column.in_(value))
        elif value is not None:
            query = query.where(column == value)
    return query


@router.get("/episodes/{episode_id}", responses=problems(404))
async def show_episode(episode_id: EpisodeId, services: Using, _: Caller) -> EpisodeDetail:
    """An episode with its attempts, turns, tests and reward parts."""
    async with services.sessions() as session:
        return await episodes.detail(session, episode_id)


@router.get("/episodes/{episode_id}/trajectory", responses=problems(404, 410, 502))
async def show_trajectory(
    episode_id: EpisodeId, services: Using, _: Caller, attempt: AttemptNumber = None
) -> TrajectoryView:
    """Token ids, mask, log-probabilities and policy versions, exactly as the engine produced them."""
    async with services.sessions() as session:
        episode = await episodes.get(session, episode_id)
        number = attempt or episode.attempt
        turns = await episodes.generated(session, episode_id, number)
    if not turns:
        raise ProblemError(404, "not-found", f"attempt {number} of episode {episode_id} has no tokens")
    data = [(turn, await services.objects.get(blob_from_json(blob))) for turn, blob in turns]
    return await asyncio.to_thread(assemble, episode, number, data)


@router.get(
    "/episodes/{episode_id}/turns/{number}/log",
    response_class=PlainTextResponse,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        **problems(404, 410, 502),
    },
)
async def show_log(
    episode_id: EpisodeId, number: Number, services: Using, _: Caller, attempt: AttemptNumber = None
) -> Response:
    """What the turn's program wrote, as far as it was kept."""
    async with services.sessions() as session:
        turn = await episodes.turn(session, episode_id, attempt, number)
    if not turn.log:
        raise ProblemError(404, "not-found", f"turn {number} of episode {episode_id} has no log")
    data = await services.objects.get(blob_from_json(turn.log))
    return PlainTextResponse(data.decode("utf-8", "replace"))


@router.get(
    "/episodes/{episode_id}/snapshot",
    response_class=Response,
    responses={200: BINARY, **UNCHANGED, **problems(404, 410, 502)},
)
async def download_snapshot(
    request: Request,
    episode_id: EpisodeId,
    services: Using,
    _: Caller,
    turn: Annotated[int | None, Query(ge=0, le=MAX_NUMBER, description="Default: the newest.")] = None,
) -> Response:
    """The workspace after a turn, as tar.zst."""
    async with services.sessions() as session:
        blob = await episodes.snapshot(session, episode_id, turn)
    name = f"{episode_id}.tar.zst" if turn is None else f"{episode_id}-turn-{turn}.tar.zst"
    return await send_blob(request, services, blob, name, "application/zstd")
