"""Server-sent events as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """One event of a run's stream."""

    kind: str
    """snapshot | episode | step | run | lost | end"""
    data: dict[str, Any]
    id: str | None = None


def parse_events(lines: Iterable[str]) -> Iterator[Event]:
    """Events in a `text/event-stream`; comments and unfinished events are dropped."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            if "data" in fields:
                yield Event(fields.get("event", "message"), json.loads(fields["data"]), fields.get("id"))
            fields = {}
            continue
        name, _, value = line.partition(":")
        if name:
            value = value.removeprefix(" ")
            fields[name] = f"{fields[name]}\n{value}" if name == "data" and name in fields else value
