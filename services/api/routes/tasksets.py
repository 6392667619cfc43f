"""`/v1/task-sets`."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request, Response, status
from fastapi.responses import JSONResponse
from sqlalchemy import select

from sandpiper.store.db.models import TaskRow, TaskSet
from services.api import commands
from services.api.auth import Caller
from services.api.intake.rundocs import media_type_of, unsupported
from services.api.intake.spool import Spooled
from services.api.intake.tasksets import ARCHIVE_TYPES, JSONL_TYPES, TaskSetUpload, parse_upload
from services.api.paging import Page, fetch_page, scope_of
from services.api.problems import conflict
from services.api.reads import tasksets
from services.api.routes.documented import IDEMPOTENCY_KEY, problems
from services.api.schemas.common import IDENT, REFERENCE, Accepted, Cursor, Limit
from services.api.schemas.tasksets import TaskSetDetail, TaskSetView, TaskView
from services.api.services import Services, Using

router = APIRouter(prefix="/v1/task-sets", tags=["task sets"])

Reference = Annotated[str, Path(pattern=REFERENCE, description="Task set id, `name` or `name@version`.")]
Label = Annotated[str | None, Query(pattern=r"^[a-z0-9][a-z0-9._-]{0,127}$")]
BINARY = {"schema": {"type": "string", "format": "binary"}}
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "JSONL, one task a line, or a tar.zst of task folders with `taskset.yaml`.",
        "content": dict.fromkeys((*JSONL_TYPES, *ARCHIVE_TYPES), BINARY),
    }
}


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    response_model=TaskSetView,
    openapi_extra=BODY,
    responses={
        200: {"model": TaskSetView, "description": "The same upload was stored before"},
        202: {"model": Accepted, "description": "Stored and announced; not visible yet"},
        **problems(408, 409, 413, 415),
    },
)
async def submit(
    request: Request,
    services: Using,
    caller: Caller,
    name: Label = None,
    version: Label = None,
    idempotency_key: Annotated[str | None, Header(description=IDEMPOTENCY_KEY)] = None,
) -> Response:
    """Upload a task set. It is checked as a whole: one bad task refuses it, and nothing is stored."""
    media_type = media_type_of(request.headers.get("content-type"))
    if media_type not in (*JSONL_TYPES, *ARCHIVE_TYPES):
        raise unsupported(media_type, (*JSONL_TYPES, *ARCHIVE_TYPES))
    async with services.spooler.receive(request) as body:
        fingerprint = hashlib.sha256(repr((body.sha256, media_type, name, version)).encode()).hexdigest()

        async def work(seed: str | None) -> Response:
            upload = await _parse(body, media_type, name, version, services)
            return await _store(services, upload, caller)

        return await services.replays.answer(idempotency_key, "POST /v1/task-sets", caller, fingerprint, work)


async def _parse(
    body: Spooled, media_type: str, name: str | None, version: str | None, services: Services
) -> TaskSetUpload:
    settings = services.spooler.settings
    return await asyncio.to_thread(parse_upload, body.file, media_type, name, version, settings)


async def _store(services: Services, upload: TaskSetUpload, caller: str) -> Response:
    ident = commands.task_set_id(upload, hashlib.sha256(upload.data).hexdigest())

    async def look() -> TaskSet | None:
        async with services.sessions() as session:
            return await session.get(TaskSet, ident)

    if (row := await look()) is not None:
        return _answer(row, status.HTTP_200_OK)
    async with services.sessions() as session:
        if await tasksets.find(session, upload.name, upload.version) is not None:
            raise conflict(f"{upload.name}@{upload.version} exists with other tasks; choose another version")
    await commands.submit_task_set(services, ident, upload, caller)
    row = await commands.seen(look, services.settings.materialise_s)
    if row is not None:
        return _answer(row, status.HTTP_201_CREATED)
    location = f"/v1/task-sets/{ident}"
    accepted = Accepted(id=ident, location=location).model_dump()
    return JSONResponse(accepted, status.HTTP_202_ACCEPTED, {"Location": location})


def _answer(row: TaskSet, code: int) -> Response:
    content = TaskSetView.model_validate(row).model_dump(mode="json")
    return JSONResponse(content, code, {"Location": f"/v1/task-sets/{row.id}"})


@router.get("", response_model=Page[TaskSetView])
async def list_task_sets(
    services: Using, _: Caller, name: Label = None, cursor: Cursor = None, limit: Limit = 50
) -> Page[TaskSetView]:
    """Task sets, newest first."""
    query = select(TaskSet)
    if name is not None:
        query = query.where(TaskSet.name == name)
    async with services.sessions() as session:
        rows, following = await fetch_page(
            session,
            query,
            (TaskSet.created_at, TaskSet.id),
            (float, str),
            scope=scope_of(of="task-sets", name=name),
            cursor=cursor,
            limit=limit,
            descending=True,
        )
    return Page(items=[TaskSetView.model_validate(row) for row in rows], next_cursor=following)


@router.get("/{reference}", responses=problems(404))
async def show_task_set(reference: Reference, services: Using, _: Caller) -> TaskSetDetail:
    """A task set and what is in it."""
    async with services.sessions() as session:
        row = await tasksets.resolve(session, reference)
        return TaskSetDetail(
            **TaskSetView.model_validate(row).model_dump(),
            splits=await tasksets.count_by(session, row.id, TaskRow.split),
            languages=await tasksets.count_by(session, row.id, TaskRow.language),
            families=await tasksets.count_by(session, row.id, TaskRow.family),
        )


@router.get("/{reference}/tasks", responses=problems(404))
async def list_tasks(
    reference: Reference,
    services: Using,
    _: Caller,
    split: Annotated[str | None, Query(pattern=IDENT)] = None,
    family: Annotated[str | None, Query(pattern=IDENT)] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[TaskView]:
    """Tasks in the order of the set, without hidden tests and reference."""
    async with services.sessions() as session:
        task_set = await tasksets.resolve(session, reference)
        query = select(TaskRow).where(TaskRow.task_set_id == task_set.id)
        if split is not None:
            query = query.where(TaskRow.split == split)
        if family is not None:
            query = query.where(TaskRow.family == family)
        rows, following = await fetch_page(
            session,
            query,
            (TaskRow.position,),
            (int,),
            scope=scope_of(of="tasks", set=task_set.id, split=split, family=family),
            cursor=cursor,
            limit=limit,
            descending=False,
        )
    return Page(items=[TaskView.of(row) for row in rows], next_cursor=following)
