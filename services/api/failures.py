"""Exception -> problem document: one table, installed on the app."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from sandpiper.bus.errors import BusUnavailable
from sandpiper.store.errors import CorruptObject, MissingObject, StoreUnavailable
from services.api.problems import FieldError, ProblemError, respond, slug_of

_STARTING_OR_STOPPING = {"57P01", "57P02", "57P03"}
"""SQLSTATEs of a server that goes down, has crashed, or does not take connections yet."""


def field_errors(error: RequestValidationError) -> list[FieldError]:
    """FastAPI's validation errors, without the input they quote."""
    found = []
    for item in error.errors():
        field = ".".join(str(part) for part in item["loc"])
        found.append(FieldError(message=str(item["msg"]), field=field or None))
    return found


def _validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = field_errors(error)
    detail = "; ".join(f"{item.field}: {item.message}" for item in errors[:3])
    return respond(request, 422, "invalid", detail or "the request is not valid", errors)


def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    return respond(request, error.status, error.slug, error.detail, error.errors, error.headers)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = f"{request.method} {request.url.path}: {error.detail}"
    return respond(request, error.status_code, slug_of(error.status_code), detail, headers=error.headers)


def _bus(request: Request, error: Exception) -> Response:
    return respond(request, 503, "bus-unavailable", f"the broker does not answer: {error}", headers=_RETRY)


def _store(request: Request, error: Exception) -> Response:
    detail = f"the object store does not answer: {error}"
    return respond(request, 503, "store-unavailable", detail, headers=_RETRY)


def _database(request: Request, error: Exception) -> Response:
    detail = f"the database does not answer ({type(error).__name__})"
    return respond(request, 503, "database-unavailable", detail, headers=_RETRY)


def _dbapi(request: Request, error: Exception) -> Response:
    assert isinstance(error, DBAPIError)
    if error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _STARTING_OR_STOPPING:
        return _database(request, error)
    raise error


def _missing(request: Request, error: Exception) -> Response:
    return respond(request, 410, "gone", f"the object is no longer stored: {error}")


def _corrupt(request: Request, error: Exception) -> Response:
    return respond(request, 502, "corrupt-object", f"stored bytes do not have their digest: {error}")


def _left(request: Request, error: Exception) -> Response:
    return respond(request, 400, "client-left", "the client closed the connection within its request")


_RETRY = {"Retry-After": "2"}

HANDLERS = {
    ProblemError: _problem,
    RequestValidationError: _validation,
    HTTPException: _http,
    ClientDisconnect: _left,
    BusUnavailable: _bus,
    StoreUnavailable: _store,
    MissingObject: _missing,
    CorruptObject: _corrupt,
    OperationalError: _database,
    InterfaceError: _database,
    PoolTimeout: _database,
    DBAPIError: _dbapi,
    ConnectionError: _database,
    TimeoutError: _database,
}


def install(app: FastAPI) -> None:
    """Answer every failure with a problem document; what is not listed is a 500 of `middleware.Guard`."""
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
