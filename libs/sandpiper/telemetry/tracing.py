"""Traces that follow a message from service to service.

Invariants
* Context crosses a process only as a W3C `traceparent`; nothing here needs a provider to pass it on.
* `emit_span` is the one way to emit a span whose ids were chosen earlier (an episode's durable root).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

_propagator = TraceContextTextMapPropagator()
_forced: ContextVar[SpanContext | None] = ContextVar("sandpiper_forced_ids", default=None)


class ChosenIdGenerator(IdGenerator):
    """Random ids, except inside `emit_span`, which has chosen them."""

    def __init__(self) -> None:
        self._random = RandomIdGenerator()

    def generate_span_id(self) -> int:
        """A fresh span id, or the chosen one."""
        forced = _forced.get()
        return forced.span_id if forced else self._random.generate_span_id()

    def generate_trace_id(self) -> int:
        """A fresh trace id, or the chosen one."""
        forced = _forced.get()
        return forced.trace_id if forced else self._random.generate_trace_id()


def setup_tracing(service: str) -> Callable[[], None]:
    """Install the process's tracer provider; returns what flushes and shuts it down (blocking).

    Everything else follows the standard OTEL_* variables. Without OTEL_EXPORTER_OTLP_ENDPOINT (or its
    traces variant) spans get ids but are not exported.
    """
    provider = make_provider(service)
    if _endpoint_set():
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def make_provider(service: str) -> TracerProvider:
    """A provider without exporters: resource, sampler by OTEL_TRACES_SAMPLER, chosen ids possible."""
    resource = Resource.create(
        {
            "service.name": os.environ.get("OTEL_SERVICE_NAME") or service,
            "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
        }
    )
    return TracerProvider(resource=resource, id_generator=ChosenIdGenerator(), shutdown_on_exit=False)


def _endpoint_set() -> bool:
    if os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return False
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    return any(os.environ.get(name) for name in names)


def current_traceparent() -> str | None:
    """W3C `traceparent` of the current span, None outside any."""
    return traceparent_of(trace.get_current_span().get_span_context())


def traceparent_of(context: SpanContext | None) -> str | None:
    """W3C form of a span context, None when there is none or it is invalid."""
    if context is None or not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def parse_traceparent(traceparent: str | None) -> SpanContext | None:
    """The span context behind a `traceparent`; None when absent or malformed."""
    if not traceparent:
        return None
    parsed = _propagator.extract({"traceparent": traceparent}, Context())
    context = trace.get_current_span(parsed).get_span_context()
    return context if context.is_valid else None


def root_traceparent(trace_id: str, span_id: str) -> str:
    """W3C traceparent of a root span that will be emitted later with `emit_span`, from its ids in hex.

    Sampled as the sampler decides, which standard samplers do by the trace id: each call says the same.
    """
    provider = trace.get_tracer_provider()
    sampled = False
    if isinstance(provider, TracerProvider):
        decision = provider.sampler.should_sample(None, int(trace_id, 16), "root").decision
        sampled = decision is Decision.RECORD_AND_SAMPLE
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    return f"00-{trace_id}-{span_id}-{int(flags):02x}"


def links_to(traceparents: Iterable[str | None]) -> list[Link]:
    """Links to other spans; absent and malformed ones are left out."""
    return [Link(context) for context in map(parse_traceparent, traceparents) if context]


@contextmanager
def span(
    name: str,
    traceparent: str | None = None,
    links: Iterable[str | None] = (),
    kind: SpanKind = SpanKind.INTERNAL,
    **attrs: AttributeValue | None,
) -> Iterator[Span]:
    """A current span. Its parent is `traceparent`, else the current span; exceptions are recorded."""
    with _tracer().start_as_current_span(
        name,
        context=_parent_context(traceparent),
        kind=kind,
        links=links_to(links),
        attributes=_present(attrs),
    ) as current:
        yield current


def emit_span(
    name: str,
    traceparent: str,
    start: float,
    end: float,
    links: Iterable[str | None] = (),
    attrs: Mapping[str, AttributeValue | None] | None = None,
    *,
    parent: str | None = None,
    error: str | None = None,
) -> None:
    """Emit a finished span whose own ids are those of `traceparent` (times in unix seconds).

    With `parent` (same trace) it is that span's child, else a root. A `traceparent` that is malformed or
    not sampled emits nothing. `error` marks the span as failed.
    """
    own = parse_traceparent(traceparent)
    if own is None or not own.trace_flags.sampled:
        return
    token = _forced.set(own)
    try:
        emitted = _tracer().start_span(
            name,
            context=_parent_context(parent) if parent else Context(),
            links=links_to(links),
            attributes=_present(attrs or {}),
            start_time=int(start * 1e9),
        )
    finally:
        _forced.reset(token)
    if error is not None:
        emitted.set_status(trace.StatusCode.ERROR, error)
    emitted.end(int(end * 1e9))


def _tracer() -> trace.Tracer:
    return trace.get_tracer("sandpiper")


def _parent_context(traceparent: str | None) -> Context | None:
    parent = parse_traceparent(traceparent)
    if parent is None:
        return None
    return trace.set_span_in_context(NonRecordingSpan(parent), Context())


def _present(attrs: Mapping[str, AttributeValue | None]) -> dict[str, AttributeValue]:
    return {name: value for name, value in attrs.items() if value is not None}
