"""A small HTTP server for `/healthz`, `/readyz` and `/metrics`.

Invariants
* A request ends within REQUEST_S, a check within CHECK_S; a check that raises or is late is not ready.
* `/healthz` says that the loop turns and nothing else, so that an outage of a neighbour restarts nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from collections.abc import Awaitable, Callable

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

Check = Callable[[], bool | Awaitable[bool]]
REQUEST_S = 5.0
CHECK_S = 2.0
REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


class Health:
    """Named readiness checks. Ready when none fails and `started` is set."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}
        self.started = False
        self.stopping = False

    def add(self, name: str, check: Check) -> None:
        """Make readiness depend on `check`, which is quick and returns True when fine."""
        self._checks[name] = check

    async def report(self) -> dict[str, bool]:
        """Each check's answer, with `started` and `not_stopping`."""
        names = list(self._checks)
        answers = await asyncio.gather(*(_ask(self._checks[name]) for name in names))
        return {
            "started": self.started,
            "not_stopping": not self.stopping,
            **dict(zip(names, answers, strict=True)),
        }


async def _ask(check: Check) -> bool:
    try:
        async with asyncio.timeout(CHECK_S):
            answer = check()
            return bool(await answer if inspect.isawaitable(answer) else answer)
    except Exception:
        return False


class HealthServer:
    """Serves one service's Health."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port (chosen by the system for 0). OSError when it is taken."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=8192)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening and drop open connections."""
        if self._server is not None:
            self._server.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REQUEST_S):
                    await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                status, kind, body = await self._answer(head.split("\r\n", 1)[0])
                writer.write(
                    f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: {kind}\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # a client that does not speak HTTP, or went away
        finally:
            writer.close()

    async def _answer(self, request: str) -> tuple[int, str, bytes]:
        method, target, _ = request.split(" ", 2)
        if method != "GET":
            return 405, "text/plain", b"only GET\n"
        match target.split("?", 1)[0]:
            case "/healthz":
                return 200, "text/plain", b"ok\n"
            case "/readyz":
                report = await self._health.report()
                return (200 if all(report.values()) else 503), "application/json", json.dumps(report).encode()
            case "/metrics":
                return 200, CONTENT_TYPE_LATEST, generate_latest()
        return 404, "text/plain", b"not found\n"
