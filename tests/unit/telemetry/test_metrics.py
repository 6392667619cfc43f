"""Metrics are declared once, named and explained alike, with bounded labels."""

from __future__ import annotations

import urllib.request

import pytest
from prometheus_client import REGISTRY, Counter, Gauge, Histogram

from sandpiper.telemetry import metrics, serve_metrics
from tests.integration.brokers import free_ports

DECLARED = {
    name: value for name, value in vars(metrics).items() if isinstance(value, Counter | Gauge | Histogram)
}
UNBOUNDED = {"run_id", "episode_id", "message_id", "task_id", "executor_id", "id"}


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_each_metric_is_named_and_explained(name: str) -> None:
    metric = DECLARED[name]
    assert name.isupper()
    assert metric._name.startswith("sandpiper_")
    assert len(metric._documentation) > 8
    assert not UNBOUNDED & set(metric._labelnames)


def test_they_are_served() -> None:
    (port,) = free_ports(1)
    before = REGISTRY.get_sample_value("sandpiper_messages_produced_total", {"topic": "t"}) or 0
    metrics.MESSAGES_PRODUCED.labels("t").inc()
    stop = serve_metrics(port, "127.0.0.1")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    finally:
        stop()
    assert f'sandpiper_messages_produced_total{{topic="t"}} {before + 1}' in text
    assert "# HELP sandpiper_handler_seconds Time in a handler" in text
