"""Responses about sandbox executors."""

from __future__ import annotations

from pydantic import BaseModel


class ExecutorView(BaseModel):
    """An executor as its newest heartbeat describes it."""

    id: str
    alive: bool
    """A heartbeat came within the last 15 seconds."""
    last_seen_s: float
    """Seconds since then."""
    partitions: list[int]
    capacity: int
    """Commands at once."""
    running: int
    queued: int
    sandboxes: int
    cpu_share: float
    memory_used_bytes: int
    memory_total_bytes: int
    disk_free_bytes: int
    io_pressure: float
    labels: list[str]
    images: list[str]
    isolation: str
    backend: str
    draining: bool


class ExecutorList(BaseModel):
    """All executors that were heard of in the last ten minutes."""

    items: list[ExecutorView]
    capacity: int
    """Of those alive."""
    running: int
    sandboxes: int
