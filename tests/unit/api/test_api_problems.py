"""Every failure is a problem document; health, metrics and the OpenAPI document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy.exc import DBAPIError, OperationalError

from sandpiper.store.errors import StoreUnavailable
from services.api.app import create_app
from services.api.services import Services
from tests.unit.api.api_fakes import client_of, make_services

REQUIRED = {"type", "title", "status", "detail", "instance", "request_id"}


class StartingUp(Exception):
    """What asyncpg raises while Postgres recovers."""

    sqlstate = "57P03"


def check(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert set(problem) >= REQUIRED
    assert problem["status"] == status
    assert problem["request_id"] == answer.headers["x-request-id"]
    return problem


async def test_problems_of_the_framework(client: httpx.AsyncClient) -> None:
    assert check(await client.get("/nowhere"), 404)["instance"] == "/nowhere"
    wrong = await client.put("/v1/runs")
    check(wrong, 405)
    assert set(wrong.headers["allow"].split(", ")) & {"GET", "POST"}
    problem = check(await client.get("/v1/runs?limit=many"), 422)
    assert problem["errors"][0]["field"] == "query.limit"
    check(await client.get("/v1/runs/%00"), 422)
    check(await client.get("/v1/runs/" + "x" * 500), 422)
    check(await client.get("/v1/episodes/e/turns/99999999999999999999/log"), 422)


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (StoreUnavailable("x"), 503, "store-unavailable"),
        (OperationalError("select", {}, Exception("password=hunter2")), 503, "database-unavailable"),
        (DBAPIError("select", {}, StartingUp()), 503, "database-unavailable"),
        (ConnectionRefusedError("x"), 503, "database-unavailable"),
        (TimeoutError(), 503, "database-unavailable"),
        (RuntimeError("inner secret"), 500, "internal-error"),
    ],
)
async def test_failures_below_a_route(
    services: Services, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, kind: str
) -> None:
    def fail() -> Any:
        raise error

    monkeypatch.setattr(services.executors, "list", fail)
    async with client_of(services) as client:
        problem = check(await client.get("/v1/executors"), status)
    assert problem["type"] == f"urn:sandpiper:problem:{kind}"
    assert "hunter2" not in str(problem)
    assert "inner secret" not in str(problem)


async def test_request_ids_are_kept_when_they_are_sane(client: httpx.AsyncClient) -> None:
    assert (await client.get("/healthz", headers={"x-request-id": "abc"})).headers["x-request-id"] == "abc"
    strange = await client.get("/healthz", headers={"x-request-id": "a b\t"})
    assert strange.headers["x-request-id"].startswith("req-")


async def test_readiness_names_what_is_missing(sessions: Any, tmp_path: Path) -> None:
    async def fine() -> None:
        return None

    async def broken() -> None:
        raise StoreUnavailable("no store")

    async with client_of(make_services(sessions, tmp_path, checks={"postgres": fine})) as client:
        assert (await client.get("/readyz")).json() == {"ready": True, "checks": {"postgres": "ok"}}
    both = {"postgres": fine, "objects": broken}
    async with client_of(make_services(sessions, tmp_path, checks=both)) as client:
        answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"] == {"postgres": "ok", "objects": "StoreUnavailable: no store"}


async def test_metrics_count_requests_by_route(client: httpx.AsyncClient) -> None:
    await client.get("/v1/runs/run-none")
    await client.get("/v1/runs/run-other")
    text = (await client.get("/metrics")).text
    (line,) = [
        item
        for item in text.splitlines()
        if item.startswith("sandpiper_http_requests_total")
        and 'route="/v1/runs/{run_id}"' in item
        and 'status="404"' in item
    ]
    assert float(line.split()[-1]) >= 2
    assert "run-none" not in text


def test_the_openapi_document_is_whole(services: Services) -> None:
    document = create_app(services).openapi()
    text = str(document)
    schemas = document["components"]["schemas"]
    for name in {part.split("'")[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in schemas, f"{name} is referred to but not there"
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description") or operation.get("summary"), (method, path)
            for status, response in operation["responses"].items():
                if status.isdecimal() and int(status) >= 400 and path != "/readyz":
                    assert list(response["content"]) == ["application/problem+json"], (method, path, status)
    assert "HTTPValidationError" not in text
    assert "RunDocument" in schemas
    assert "Problem" in schemas
    identifiers = [op["operationId"] for ops in document["paths"].values() for op in ops.values()]
    assert len(identifiers) == len(set(identifiers))
