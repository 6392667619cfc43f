"""Runs the app under uvicorn, within the service's own life: no signal handlers, no exits of its own.

Invariants: a port that is taken is an OSError at the start; `stop` ends event streams, lets requests in
flight end within its time and cuts the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import structlog
import uvicorn
from fastapi import FastAPI

from services.api.live.hub import Hub

log = structlog.get_logger()


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to the service runtime."""
        yield


class HttpServer:
    """One listening socket and what answers on it."""

    def __init__(self, app: FastAPI, hub: Hub, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=1024)
        self._hub = hub
        self._done = asyncio.Event()
        self._server = _Server(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="warning",
                access_log=False,
                lifespan="off",
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=5,
                ws="none",
            )
        )

    @property
    def port(self) -> int:
        """The port that was bound."""
        return int(self._socket.getsockname()[1])

    @property
    def started(self) -> bool:
        """Requests are answered."""
        return bool(self._server.started)

    async def run(self) -> None:
        """Serve until `stop`."""
        log.info("http.listening", port=self.port)
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            self._socket.close()
            self._done.set()

    async def stop(self, timeout: float) -> None:
        """End streams, take no more, and wait for what is in flight."""
        self._hub.close()
        self._server.config.timeout_graceful_shutdown = max(1, int(timeout - 1))
        self._server.should_exit = True
        try:
            async with asyncio.timeout(timeout):
                await self._done.wait()
        except TimeoutError:
            self._server.force_exit = True
