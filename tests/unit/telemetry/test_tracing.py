"""Context passes through, chosen ids are kept, exporters come only by the standard variables."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sandpiper.telemetry import tracing

TRACE = "0af7651916cd43dd8448eb211c80319c"
ROOT = f"00-{TRACE}-b7ad6b7169203331-01"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What a provider of ours exports, without making it the process's."""
    exporter = InMemorySpanExporter()
    provider = tracing.make_provider("tests")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", lambda: provider.get_tracer("tests"))
    yield exporter
    provider.shutdown()


def only(spans: InMemorySpanExporter) -> ReadableSpan:
    (span,) = spans.get_finished_spans()
    return span


def test_no_span_no_traceparent() -> None:
    assert tracing.current_traceparent() is None


def test_a_span_continues_the_traceparent_and_shows_itself_as_the_next_parent(
    spans: InMemorySpanExporter,
) -> None:
    with tracing.span("work", traceparent=PARENT, topic="t", nothing=None):
        inner = tracing.current_traceparent()
    span = only(spans)
    assert tracing.traceparent_of(span.parent) == PARENT
    assert inner == tracing.traceparent_of(span.get_span_context())
    assert dict(span.attributes or {}) == {"topic": "t"}
    assert span.resource.attributes["service.name"] == "tests"


def test_failures_are_on_the_span_and_pass_through(spans: InMemorySpanExporter) -> None:
    with pytest.raises(KeyError), tracing.span("work"):
        raise KeyError("x")
    assert only(spans).status.status_code is trace.StatusCode.ERROR
    assert [event.name for event in only(spans).events] == ["exception"]


@pytest.mark.parametrize("junk", [None, "", "00-zz-11-01", "junk", f"00-{'0' * 32}-{'0' * 16}-01"])
def test_a_malformed_traceparent_counts_as_none(spans: InMemorySpanExporter, junk: str | None) -> None:
    assert tracing.parse_traceparent(junk) is None
    with tracing.span("work", traceparent=junk, links=[junk, ROOT]):
        pass
    assert only(spans).parent is None
    assert len(only(spans).links) == 1


def test_an_emitted_span_has_the_ids_and_times_that_were_chosen(spans: InMemorySpanExporter) -> None:
    tracing.emit_span("episode", ROOT, 10.0, 12.5, links=[PARENT], attrs={"run": "r", "none": None})
    with tracing.span("child", traceparent=ROOT):
        pass
    root, child = spans.get_finished_spans()
    assert tracing.traceparent_of(root.get_span_context()) == ROOT
    assert root.parent is None
    assert (root.start_time, root.end_time) == (10_000_000_000, 12_500_000_000)
    assert tracing.traceparent_of(child.parent) == ROOT
    assert tracing.traceparent_of(child.get_span_context()) != ROOT
    assert tracing.traceparent_of(root.links[0].context) == PARENT
    assert dict(root.attributes or {}) == {"run": "r"}


def test_an_emitted_span_can_be_a_child_and_a_failure(spans: InMemorySpanExporter) -> None:
    tracing.emit_span("attempt", ROOT, 1.0, 2.0, parent=PARENT, error="lost")
    span = only(spans)
    assert tracing.traceparent_of(span.parent) == PARENT
    assert tracing.traceparent_of(span.get_span_context()) == ROOT
    assert (span.status.status_code, span.status.description) == (trace.StatusCode.ERROR, "lost")


def test_what_was_not_sampled_is_not_emitted(spans: InMemorySpanExporter) -> None:
    tracing.emit_span("episode", ROOT[:-1] + "0", 1.0, 2.0)
    tracing.emit_span("episode", "junk", 1.0, 2.0)
    assert not spans.get_finished_spans()


PROGRAM = """
import secrets
from sandpiper.telemetry import setup_tracing, tracing
flush = setup_tracing("probe")
chosen = [(secrets.token_hex(16), secrets.token_hex(8)) for _ in range(20)]
ids = [tracing.root_traceparent(*pair) for pair in chosen]
assert ids == [tracing.root_traceparent(*pair) for pair in chosen]
for number, traceparent in enumerate(ids):
    tracing.emit_span("root", traceparent, 1.0, 2.0)
    with tracing.span("child", traceparent=traceparent):
        pass
flush()
print(sum(traceparent.endswith(("1", "3")) for traceparent in ids), len(set(ids)))
"""


@pytest.fixture
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """An OTLP/HTTP collector: its address and what it got."""
    got: list[ExportTraceServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") != "gzip":
                got.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("variables", "sampled", "exported"),
    [
        ({}, "20", 0),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "URL"}, "20", 40),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "URL", "OTEL_TRACES_EXPORTER": "none"}, "20", 0),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "URL", "OTEL_TRACES_SAMPLER": "always_off"}, "0", 0),
    ],
)
def test_exporter_and_sampler_follow_the_standard_variables(
    collector: tuple[str, list[ExportTraceServiceRequest]],
    variables: dict[str, str],
    sampled: str,
    exported: int,
) -> None:
    url, got = collector
    env = {name: value.replace("URL", url) for name, value in variables.items()} | {"PYTHONPATH": "libs"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == [sampled, "20"]
    names = [
        (span.name, {a.key: a.value.string_value for a in resource.resource.attributes}["service.name"])
        for request in got
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert len(names) == exported
    assert set(names) <= {("root", "probe"), ("child", "probe")}
