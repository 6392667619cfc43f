"""What surrounds every request: an id, a log line, metrics, safe headers, an answer to what nobody caught.

Invariants: every response carries `X-Request-Id`; an unexpected failure is logged once and answered with a
500 problem that tells nothing of its inside; bodies are never buffered here.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Collection
from urllib.parse import urlsplit

import structlog
from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sandpiper.ids import new_id
from sandpiper.telemetry import metrics
from services.api.problems import respond

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
QUIET = ("/healthz", "/readyz", "/metrics")

log = structlog.get_logger()


class Guard:
    """The outermost layer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        ident = given if REQUEST_ID.fullmatch(given) else new_id("req")
        scope.setdefault("state", {})["request_id"] = ident
        with structlog.contextvars.bound_contextvars(request_id=ident):
            await self._handle(scope, receive, _Answer(send, ident))

    async def _handle(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        began = time.monotonic()
        try:
            await self._app(scope, receive, answer)
        except Exception:
            log.exception("request_failed", method=scope["method"], path=scope["path"])
            if answer.status:
                raise  # half a response is out: all that is left is to cut the connection
            detail = "the request failed; the logs have it under its request id"
            problem = respond(Request(scope), 500, "internal-error", detail)
            await problem(scope, receive, answer)
        finally:
            _record(scope, answer.status or 500, time.monotonic() - began)


class _Answer:
    """`send`, with the headers that every response has."""

    def __init__(self, send: Send, ident: str) -> None:
        self._send, self._ident = send, ident
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self._ident
            headers["X-Content-Type-Options"] = "nosniff"
            headers.setdefault("Cache-Control", "no-store")
        await self._send(message)


def _record(scope: Scope, status: int, seconds: float) -> None:
    route = getattr(scope.get("route"), "path", "unmatched")
    metrics.HTTP_REQUESTS.labels(scope["method"] if route != "unmatched" else "any", route, str(status)).inc()
    metrics.HTTP_SECONDS.labels(route).observe(seconds)
    if scope["path"] not in QUIET:
        caller = scope.get("state", {}).get("caller")
        write = log.debug if scope["method"] == "GET" and status < 400 else log.info
        write(
            "request",
            method=scope["method"],
            path=scope["path"],
            status=status,
            seconds=round(seconds, 4),
            caller=caller,
        )


class LocalOnly:
    """Without API keys: refuses what a web page elsewhere could make a browser send to this machine.

    The `Host` must be a loopback name (no DNS rebinding) and an `Origin`, where there is one, too.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._allowed(Headers(scope=scope)):
            detail = "without API keys only requests to and from this machine are served"
            await respond(Request(scope), 403, "not-local", detail)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _allowed(self, headers: Headers) -> bool:
        origin = headers.get("origin")
        return self._local(f"//{headers.get('host', '')}") and (origin is None or self._local(origin))

    def _local(self, url: str) -> bool:
        try:
            host = urlsplit(url).hostname or ""
        except ValueError:
            return False
        if host == "localhost" or host in self._hosts:
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False
