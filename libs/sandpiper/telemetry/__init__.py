"""Logs, traces and metrics, set up the same way in every service."""

from __future__ import annotations

import structlog

from sandpiper.telemetry.logs import setup_logging
from sandpiper.telemetry.metrics import serve_metrics
from sandpiper.telemetry.tracing import setup_tracing

__all__ = ["log", "serve_metrics", "setup_logging", "setup_tracing"]

log = structlog.get_logger()
