"""RFC 9457 problem documents: the only shape in which this service says no."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

MEDIA_TYPE = "application/problem+json"
MAX_ERRORS = 100


class FieldError(BaseModel):
    """One thing that is wrong with a request, and where."""

    message: str
    field: str | None = None
    """Dotted path within the document, the query or the record."""
    line: int | None = None
    """Line of a JSONL upload, counted from 1."""
    file: str | None = None
    """Entry of an archive."""


class Problem(BaseModel):
    """An RFC 9457 problem document."""

    type: str = Field(examples=["urn:sandpiper:problem:not-found"])
    title: str
    status: int
    detail: str
    instance: str
    """Path of the request."""
    request_id: str | None = None
    """Also in the `X-Request-Id` header and in the logs."""
    errors: list[FieldError] | None = None
    """What is wrong, item by item; at most 100."""


class ProblemError(Exception):
    """Raised anywhere below a route to answer with a problem document.

    `slug` becomes the type (`urn:sandpiper:problem:<slug>`) and, in words, the title.
    """

    def __init__(
        self,
        status: int,
        slug: str,
        detail: str,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.slug = slug
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})


def not_found(what: str, ident: object) -> ProblemError:
    return ProblemError(404, "not-found", f"there is no {what} {ident!s}")


def conflict(detail: str) -> ProblemError:
    return ProblemError(409, "conflict", detail)


def invalid(detail: str, errors: Sequence[FieldError] = ()) -> ProblemError:
    """422: understood, but not acceptable."""
    return ProblemError(422, "invalid", detail, errors)


def too_large(detail: str) -> ProblemError:
    return ProblemError(413, "too-large", detail)


def unavailable(detail: str) -> ProblemError:
    return ProblemError(503, "unavailable", detail, headers={"Retry-After": "2"})


def slug_of(status: int) -> str:
    """A slug for a plain HTTP status."""
    try:
        return HTTPStatus(status).phrase.lower().replace(" ", "-").replace("'", "")
    except ValueError:
        return "error"


def respond(
    request: Request,
    status: int,
    slug: str,
    detail: str,
    errors: Sequence[FieldError] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """The HTTP response of a problem."""
    problem = Problem(
        type=f"urn:sandpiper:problem:{slug}",
        title=slug.replace("-", " ").capitalize(),
        status=status,
        detail=detail,
        instance=request.url.path,
        request_id=request.scope.get("state", {}).get("request_id"),
        errors=list(errors[:MAX_ERRORS]) or None,
    )
    content = problem.model_dump(mode="json", exclude_none=True)
    return JSONResponse(content, status, dict(headers or {}), media_type=MEDIA_TYPE)
