"""An OTLP/HTTP receiver that keeps the spans it is sent."""

from __future__ import annotations

import gzip
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class SeenSpan:
    """One exported span; ids in hex, `parent` empty for a root."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent: str
    links: tuple[tuple[str, str], ...]
    """(trace id, span id) of each link."""


@dataclass
class Receiver:
    """Everything that was exported, by trace."""

    endpoint: str = ""
    spans: list[SeenSpan] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, body: bytes) -> None:
        """Keep the spans of one export request."""
        request = ExportTraceServiceRequest.FromString(body)
        with self.lock:
            for resource in request.resource_spans:
                attributes = {a.key: a.value.string_value for a in resource.resource.attributes}
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        self.spans.append(
                            SeenSpan(
                                attributes.get("service.name", "?"),
                                span.name,
                                span.trace_id.hex(),
                                span.span_id.hex(),
                                span.parent_span_id.hex(),
                                tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
                            )
                        )

    def traces(self) -> dict[str, list[SeenSpan]]:
        """Trace id → spans."""
        grouped: dict[str, list[SeenSpan]] = defaultdict(list)
        with self.lock:
            for span in self.spans:
                grouped[span.trace_id].append(span)
        return grouped


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Serve on a free loopback port until the block ends."""
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            kept.add(body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    kept.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
