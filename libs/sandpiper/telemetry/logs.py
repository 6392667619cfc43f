"""Logging: one JSON line per event, with service, level and ids."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog
from opentelemetry import trace
from structlog.typing import EventDict, Processor, WrappedLogger

# These log a line for each failed attempt to reach a broker; the bus says it once.
_NOISY = {"aiokafka": logging.CRITICAL, "httpx": logging.WARNING, "httpcore": logging.WARNING}


def setup_logging(service: str, level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send structlog's and the standard library's records to `stream` (stderr) as JSON lines.

    Bind ids with `structlog.contextvars.bind_contextvars(episode_id=...)`; they appear in every line
    of that task, beside `service`, `level`, `at`, and the current `trace_id` and `span_id`.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        _service_adder(service),
        _add_trace_ids,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(default=str),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name, floor in _NOISY.items():
        logging.getLogger(name).setLevel(floor)


def _service_adder(service: str) -> Processor:
    def add(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        event.setdefault("service", service)
        return event

    return add


def _add_trace_ids(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event.setdefault("trace_id", f"{context.trace_id:032x}")
        event.setdefault("span_id", f"{context.span_id:016x}")
    return event
