"""What the OpenAPI document says about failures, kept in one place."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from sandpiper.runs import RunDocument
from services.api.problems import MEDIA_TYPE, Problem, slug_of

IDEMPOTENCY_KEY = (
    "A value of your choice (1 to 255 printable ASCII characters), new for every request that you mean: "
    "a retry with the same key and body gets the first answer again, another body gets 422."
)
UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "`If-None-Match` names what is there"}}
ALWAYS = (401, 422, 500, 503)
"""Every route may answer with these."""


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """`responses=` of a route that may answer with these problems."""
    return {status: {"model": Problem, "description": slug_of(status)} for status in statuses}


def openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with problem documents under their own media type."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        for path in document["paths"].values():
            for operation in path.values():
                for response in operation["responses"].values():
                    _rename(response)
        schemas = document["components"]["schemas"]
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        # Read from the raw body (JSON or YAML), so FastAPI does not know of it.
        run_document = RunDocument.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= {**run_document.pop("$defs"), "RunDocument": run_document}
        app.openapi_schema = document
    return app.openapi_schema


def _rename(response: dict[str, Any]) -> None:
    for body in response.get("content", {}).values():
        if body.get("schema", {}).get("$ref", "").endswith("/Problem"):
            response["content"] = {MEDIA_TYPE: body}
            return
