"""`/v1/runs`: create, list, show, control."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response, status
from fastapi.responses import JSONResponse
from sqlalchemy import select

from sandpiper.store.db.models import Run, TrainingStepRow
from services.api import commands
from services.api.admission import admit, hold_policy
from services.api.auth import Caller
from services.api.intake.rundocs import JSON_TYPES, YAML_TYPES, media_type_of, parse_document
from services.api.intake.spool import read_small
from services.api.paging import Page, fetch_page, scope_of
from services.api.problems import conflict
from services.api.reads import progress, runs
from services.api.routes.documented import IDEMPOTENCY_KEY, problems
from services.api.schemas.common import Accepted, Cursor, Limit, RunId
from services.api.schemas.runs import RunDetail, RunSummary, StepView
from services.api.services import Services, Using

router = APIRouter(prefix="/v1/runs", tags=["runs"])

State = Literal["waiting", "running", "paused", "succeeded", "failed", "cancelled"]
Verb = Literal["pause", "resume", "cancel"]
Key = Annotated[str | None, Header(description=IDEMPOTENCY_KEY)]
LEGAL: dict[str, frozenset[str]] = {
    "pause": frozenset({"running"}),
    "resume": frozenset({"paused"}),
    "cancel": frozenset({"waiting", "running", "paused"}),
}
"""States in which a run takes a command."""
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A run document, as JSON or YAML.",
        "content": {
            **{kind: {"schema": {"$ref": "#/components/schemas/RunDocument"}} for kind in JSON_TYPES},
            **{kind: {"schema": {"type": "string"}} for kind in YAML_TYPES},
        },
    }
}


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    response_model=RunSummary,
    openapi_extra=BODY,
    responses={
        202: {"model": Accepted, "description": "Announced; not visible yet"},
        **problems(408, 409, 413, 415),
    },
)
async def create_run(
    request: Request, services: Using, caller: Caller, idempotency_key: Key = None
) -> Response:
    """Start a run. Its task set and its policy are looked up now and pinned in its document."""
    media_type = media_type_of(request.headers.get("content-type"))
    body = await read_small(request, services.settings.max_document_bytes)
    fingerprint = hashlib.sha256(media_type.encode() + b"\n" + body).hexdigest()

    async def work(seed: str | None) -> Response:
        document = await asyncio.to_thread(parse_document, body, media_type)
        pinned = await admit(services, document)
        run_id = commands.run_id_of(seed)
        await hold_policy(services, pinned.policy, run_id)
        await commands.create_run(services, run_id, pinned, caller, seed)
        return await _created(services, run_id)

    return await services.replays.answer(idempotency_key, "POST /v1/runs", caller, fingerprint, work)


async def _created(services: Services, run_id: str) -> Response:
    location = f"/v1/runs/{run_id}"

    async def look() -> Run | None:
        async with services.sessions() as session:
            return await session.get(Run, run_id)

    row = await commands.seen(look, services.settings.materialise_s)
    if row is None:
        accepted = Accepted(id=run_id, location=location).model_dump()
        return JSONResponse(accepted, status.HTTP_202_ACCEPTED, {"Location": location})
    return JSONResponse(RunSummary.of(row).model_dump(mode="json"), 201, {"Location": location})


@router.get("")
async def list_runs(
    services: Using,
    _: Caller,
    state: Annotated[State | None, Query()] = None,
    mode: Annotated[Literal["train", "eval"] | None, Query()] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[RunSummary]:
    """Runs, newest first."""
    query = select(Run)
    if state is not None:
        query = query.where(Run.state == state)
    if mode is not None:
        query = query.where(Run.mode == mode)
    async with services.sessions() as session:
        rows, following = await fetch_page(
            session,
            query,
            (Run.created_at, Run.id),
            (float, str),
            scope=scope_of(of="runs", state=state, mode=mode),
            cursor=cursor,
            limit=limit,
            descending=True,
        )
    return Page(items=[RunSummary.of(row) for row in rows], next_cursor=following)


@router.get("/{run_id}", responses=problems(404))
async def show_run(run_id: RunId, services: Using, _: Caller) -> RunDetail:
    """A run with its progress."""
    async with services.sessions() as session:
        row = await runs.get(session, run_id)
        return await progress.detail(session, row, services.clock.time())


@router.get("/{run_id}/steps", responses=problems(404))
async def list_steps(
    run_id: RunId, services: Using, _: Caller, cursor: Cursor = None, limit: Limit = 100
) -> Page[StepView]:
    """Optimizer steps, oldest first."""
    async with services.sessions() as session:
        await runs.get(session, run_id)
        rows, following = await fetch_page(
            session,
            select(TrainingStepRow).where(TrainingStepRow.run_id == run_id),
            (TrainingStepRow.step,),
            (int,),
            scope=scope_of(of="steps", run=run_id),
            cursor=cursor,
            limit=limit,
            descending=False,
        )
    return Page(items=[StepView.of(row) for row in rows], next_cursor=following)


@router.post(
    "/{run_id}/{verb}",
    response_model=RunSummary,
    responses={
        202: {"model": Accepted, "description": "Announced; the run has not changed yet"},
        **problems(404, 409),
    },
)
async def control_run(
    run_id: RunId, verb: Verb, services: Using, caller: Caller, idempotency_key: Key = None
) -> Response:
    """Pause, resume or cancel a run; 409 where its state does not allow it."""

    async def work(seed: str | None) -> Response:
        async with services.sessions() as session:
            state = (await runs.get(session, run_id)).state
        if state not in LEGAL[verb]:
            raise conflict(f"run {run_id} is {state}: it cannot be {_PAST[verb]}")
        await commands.control_run(services, run_id, verb, seed)
        return await _changed(services, run_id, verb)

    route = f"POST /v1/runs/{run_id}/{verb}"
    return await services.replays.answer(idempotency_key, route, caller, verb, work)


_PAST = {"pause": "paused", "resume": "resumed", "cancel": "cancelled"}


async def _changed(services: Services, run_id: str, verb: str) -> Response:
    """Waits until the run has left the states in which the command is legal."""

    async def look() -> Run | None:
        async with services.sessions() as session:
            row = await session.get(Run, run_id)
        return row if row is not None and row.state not in LEGAL[verb] else None

    row = await commands.seen(look, services.settings.materialise_s)
    if row is None:
        accepted = Accepted(id=run_id, location=f"/v1/runs/{run_id}").model_dump()
        return JSONResponse(accepted, status.HTTP_202_ACCEPTED)
    return JSONResponse(RunSummary.of(row).model_dump(mode="json"))
