"""Health, metrics, executors."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel

from services.api.auth import Caller
from services.api.schemas.executors import ExecutorList
from services.api.services import Check, Using

CHECK_S = 3.0
open_router = APIRouter(tags=["operations"])
router = APIRouter(prefix="/v1", tags=["operations"])


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """Whether requests can be served, part by part: `ok`, or what is wrong."""

    ready: bool
    checks: dict[str, str]


@open_router.get("/healthz")
async def healthz() -> Health:
    """200 as long as the process lives."""
    return Health()


@open_router.get("/readyz", response_model=Readiness, responses={503: {"model": Readiness}})
async def readyz(services: Using) -> Response:
    """200 when Postgres, the broker and the object store answer; else 503 and what does not."""
    found = await check_all(services.checks)
    ready = all(result == "ok" for result in found.values())
    content = Readiness(ready=ready, checks=found).model_dump()
    return JSONResponse(content, 200 if ready else 503)


async def check_all(checks: Mapping[str, Check]) -> dict[str, str]:
    """All checks at once, each with a deadline."""
    results = await asyncio.gather(*map(_check, checks.values()))
    return dict(zip(checks, results, strict=True))


async def _check(check: Check) -> str:
    try:
        async with asyncio.timeout(CHECK_S):
            await check()
    except TimeoutError:
        return f"no answer in {CHECK_S:g} s"
    except Exception as error:  # whatever it is, it is the answer
        return f"{type(error).__name__}: {str(error)[:200]}"
    return "ok"


@open_router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics() -> Response:
    """Prometheus metrics of this process."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


@router.get("/executors")
async def list_executors(services: Using, _: Caller) -> ExecutorList:
    """Sandbox executors by their heartbeats."""
    return services.executors.list()
