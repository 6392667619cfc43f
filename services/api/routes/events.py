"""`/v1/runs/{id}/events`: a run as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header
from fastapi.responses import StreamingResponse

from services.api.auth import Caller
from services.api.live.hub import LiveEvent
from services.api.problems import unavailable
from services.api.reads import progress, runs
from services.api.routes.documented import problems
from services.api.schemas.common import RunId
from services.api.schemas.runs import TERMINAL, RunDetail, RunSummary
from services.api.services import Services, Using

router = APIRouter(prefix="/v1", tags=["runs"])

EVENT: dict[str, Any] = {
    "type": "object",
    "description": "One server-sent event; `data` is JSON text.",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": ["snapshot", "episode", "step", "run", "lost", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "id": {"type": "string"},
    },
}
STREAM: dict[str, Any] = {"content": {"text/event-stream": {"schema": EVENT}}}
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@router.get(
    "/runs/{run_id}/events",
    response_class=StreamingResponse,
    responses={200: STREAM, **problems(404)},
)
async def stream_events(
    run_id: RunId,
    services: Using,
    _: Caller,
    last_event_id: Annotated[str | None, Header(max_length=64)] = None,
) -> StreamingResponse:
    """Server-sent events: `snapshot` (the run as now), then `episode`, `step`, `run`, and `end`.

    A client that is too slow gets `lost` with a count. `Last-Event-ID` brings back what this process still
    remembers. Data is JSON.
    """
    async with services.sessions() as session:
        await runs.get(session, run_id)
    if services.hub.full:
        raise unavailable("too many event streams are open; try again later")
    events = _events(services, run_id, last_event_id)
    return StreamingResponse(events, headers=HEADERS, media_type="text/event-stream")


async def _events(services: Services, run_id: str, last_id: str | None) -> AsyncIterator[bytes]:
    # Watched first and read then: nothing that happens in between is missed.
    with services.hub.watch(run_id, last_id) as client:
        first = await _now(services, run_id)
        yield encode(LiveEvent(run_id, "snapshot", first.model_dump_json()))
        if first.state in TERMINAL:
            summary = first.model_dump_json(include=set(RunSummary.model_fields))
            yield encode(LiveEvent(run_id, "end", summary))
            return
        async for event in client.events(services.settings.heartbeat_s):
            yield b": still here\n\n" if event is None else encode(event)


async def _now(services: Services, run_id: str) -> RunDetail:
    async with services.sessions() as session:
        return await progress.detail(session, await runs.get(session, run_id), services.clock.time())


def encode(event: LiveEvent) -> bytes:
    """One event on the wire; `data` is JSON and so holds no line ends."""
    ident = f"id: {event.id}\n" if event.id else ""
    return f"{ident}event: {event.kind}\ndata: {event.data}\n\n".encode()
