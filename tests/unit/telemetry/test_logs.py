"""One JSON line per event, with service, level and ids; the standard library's records too."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from sandpiper.telemetry import setup_logging


@pytest.fixture
def lines() -> Iterator[Any]:
    """Set up logging into memory; call for the lines so far."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    setup_logging("grader", "info", stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers[:], root.level = before[0], before[1]
    structlog.reset_defaults()


def test_events_carry_service_level_time_and_bound_ids(lines: Any) -> None:
    log = structlog.get_logger("x")
    with structlog.contextvars.bound_contextvars(episode_id="ep-1"):
        log.info("grading.done", verdict="pass", at_bytes=b"\xff")
    log.debug("not shown")
    (line,) = lines()
    assert {name: line[name] for name in ("event", "level", "service", "episode_id", "verdict")} == {
        "event": "grading.done",
        "level": "info",
        "service": "grader",
        "episode_id": "ep-1",
        "verdict": "pass",
    }
    assert line["at"].endswith("Z")


def test_exceptions_stay_on_one_line(lines: Any) -> None:
    try:
        raise KeyError("gone")
    except KeyError:
        structlog.get_logger().exception("failed")
    (line,) = lines()
    assert "KeyError: 'gone'" in line["exception"]
    assert line["level"] == "error"


def test_records_of_other_libraries_look_the_same_and_the_noisy_ones_are_quiet(lines: Any) -> None:
    logging.getLogger("somebody").warning("%s is odd", "this", extra={"number": 3})
    logging.getLogger("aiokafka.consumer.fetcher").error("Failed fetch messages from 1")
    (line,) = lines()
    assert (line["event"], line["level"], line["service"], line["number"]) == (
        "this is odd",
        "warning",
        "grader",
        3,
    )
