"""Requests that wait for a policy, in lanes: one per run that follows its newest version, and one per
pinned version."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from sandpiper.v1.common_pb2 import PolicyRef
from services.inference.policies.registry import Published

Lane = tuple[str, Published | None]
"""Run, and the policy when it is pinned."""


@dataclass(eq=False)
class Ticket:
    """One waiting request. `granted` is set by the scheduler."""

    lane: Lane
    asked: Published
    since: float
    granted: asyncio.Future[None]

    @classmethod
    def of(cls, ref: PolicyRef, now: float) -> Ticket:
        """A new ticket for a request's policy."""
        asked = Published.of(ref.run_id, ref.version, ref.manifest)
        lane = (ref.run_id, asked if ref.pinned else None)
        return cls(lane, asked, now, asyncio.get_running_loop().create_future())

    @property
    def pinned(self) -> bool:
        """True when no other version will do."""
        return self.lane[1] is not None

    def accepts(self, published: Published) -> bool:
        """True when that version satisfies the request."""
        if self.pinned:
            return published == self.asked
        return published.run_id == self.asked.run_id and published.version >= self.asked.version


class Lanes:
    """Waiting tickets in the order of their arrival."""

    def __init__(self) -> None:
        self._tickets: dict[Ticket, None] = {}

    def __iter__(self) -> Iterator[Ticket]:
        return iter(list(self._tickets))

    def __len__(self) -> int:
        return len(self._tickets)

    def add(self, ticket: Ticket) -> None:
        """Put a ticket at the end of the queue."""
        self._tickets[ticket] = None

    def remove(self, ticket: Ticket) -> None:
        """Take a ticket out, wherever it stands; absent is fine."""
        self._tickets.pop(ticket, None)

    def of(self, lane: Lane | None) -> list[Ticket]:
        """The tickets of one lane."""
        return [ticket for ticket in self._tickets if ticket.lane == lane]

    def oldest_besides(self, lane: Lane | None) -> Ticket | None:
        """The ticket of another lane that has waited longest."""
        return next((ticket for ticket in self._tickets if ticket.lane != lane), None)
