"""A scripted HTTP server that answers like a store having a bad day."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sandpiper.store.objects import ObjectSettings

Behaviour = Callable[[BaseHTTPRequestHandler], None]


def answer(status: int, body: bytes = b"", code: str = "") -> Behaviour:
    """A plain answer; with `code`, an S3 error document."""
    if code:
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>m</Message></Error>".encode()

    def behave(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", "text/xml; charset=utf-8" if code else "application/octet-stream")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)

    return behave


def cut_off(handler: BaseHTTPRequestHandler) -> None:
    """Promise a hundred bytes, send ten, hang up."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100")
    handler.end_headers()
    handler.wfile.write(b"0123456789")
    handler.close_connection = True


def hang(seconds: float) -> Behaviour:
    """Say nothing for a while, then hang up."""

    def behave(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(seconds)
        handler.close_connection = True

    return behave


class FaultyS3(ThreadingHTTPServer):
    """Plays `script` request by request; its last entry repeats."""

    daemon_threads = True

    def __init__(self, script: list[Behaviour]) -> None:
        self.script = script
        self.seen: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []
        self.slow_s = 0.0
        """How long a request's body is left in the socket."""
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def next_behaviour(self, method: str, path: str) -> Behaviour:
        with self._lock:
            self.seen.append((method, path))
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    @property
    def settings(self) -> ObjectSettings:
        return ObjectSettings.model_validate(
            {
                "endpoint": f"127.0.0.1:{self.server_address[1]}",
                "access_key": "access-key-1",
                "secret_key": "secret-key-1",
                "connect_timeout_s": 0.5,
                "read_timeout_s": 0.5,
                "deadline_s": 2.0,
            }
        )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        assert isinstance(self.server, FaultyS3)
        time.sleep(self.server.slow_s)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.bodies.append(body)
        self.server.next_behaviour(self.command, self.path)(self)

    do_GET = do_PUT = do_HEAD = do_DELETE = _serve  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def serving(*script: Behaviour) -> Iterator[FaultyS3]:
    """The server, on a free port, for the length of a test."""
    server = FaultyS3(list(script))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
