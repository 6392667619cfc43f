"""What the routes work with: built once by `wiring`, carried on the app."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Protocol

from fastapi import Depends, Request

from sandpiper.bus.message import Outgoing
from sandpiper.clock import Clock
from sandpiper.store.db.engine import Sessions
from sandpiper.store.objects import ObjectStore
from services.api.idempotency import Replays
from services.api.intake.spool import Spooler
from services.api.keys import KeyRing
from services.api.live.executors import ExecutorRegistry
from services.api.live.hub import Hub
from services.api.settings import HttpSettings

Check = Callable[[], Awaitable[None]]
"""Raises when the part that it checks is not usable."""


class Publisher(Protocol):
    """The bus producer, as far as this service uses it."""

    async def send(self, out: Outgoing, *, timeout: float | None = None) -> None:
        """Returns once the broker has acknowledged; raises `BusUnavailable` after `timeout` seconds."""


@dataclass(frozen=True)
class Services:
    """Everything that a request may need."""

    settings: HttpSettings
    keys: KeyRing
    sessions: Sessions
    objects: ObjectStore
    publisher: Publisher
    replays: Replays
    spooler: Spooler
    hub: Hub
    executors: ExecutorRegistry
    checks: Mapping[str, Check]
    clock: Clock
    downloads: asyncio.Semaphore


def services_of(request: Request) -> Services:
    """The services of the app that handles `request`."""
    found = request.app.state.services
    assert isinstance(found, Services)
    return found


Using = Annotated[Services, Depends(services_of)]
