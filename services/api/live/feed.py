"""Where live events come from: `episode.events`, and the rows of the runs that somebody watches.

Invariants: a run that nobody watches costs nothing; a database that is away delays events and ends no stream;
the stream of a run ends after its last state was sent.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog
from sqlalchemy.exc import SQLAlchemyError

from sandpiper.bus.message import Received
from sandpiper.store.db.engine import Sessions
from sandpiper.store.db.models import Run
from sandpiper.v1.events_pb2 import EpisodeEvent
from services.api.live.hub import Hub
from services.api.reads import runs
from services.api.schemas.events import EpisodeEventView
from services.api.schemas.runs import TERMINAL, RunSummary, StepView

log = structlog.get_logger()


@dataclass(frozen=True)
class _Known:
    """What the clients of a run were last told."""

    summary: str
    step: int


class Feed:
    """Publishes to the hub."""

    def __init__(self, hub: Hub, sessions: Sessions, poll_s: float) -> None:
        self._hub, self._sessions, self._poll_s = hub, sessions, poll_s
        self._known: dict[str, _Known] = {}

    async def on_episode(self, received: Received[EpisodeEvent]) -> None:
        """Bus handler."""
        event = EpisodeEventView.of(received.message)
        self._hub.publish(event.run_id, "episode", event.model_dump_json())

    async def poll_forever(self) -> None:
        """Look for changes of watched runs until cancelled."""
        while True:
            try:
                await self.poll()
            except (SQLAlchemyError, OSError) as error:
                log.warning("run_poll_failed", error=str(error))
            await asyncio.sleep(self._poll_s)

    async def poll(self) -> None:
        """One look at every watched run."""
        watched = self._hub.watched
        self._known = {run_id: known for run_id, known in self._known.items() if run_id in watched}
        for run_id in watched:
            await self._look(run_id)

    async def _look(self, run_id: str) -> None:
        async with self._sessions() as session:
            row = await session.get(Run, run_id)
            if row is None:
                return
            known = self._known.get(run_id) or _Known("", row.step)
            steps = await runs.steps_after(session, run_id, known.step)
        for step in steps:
            self._hub.publish(run_id, "step", StepView.of(step).model_dump_json())
        summary = RunSummary.of(row).model_dump_json()
        if summary != known.summary:
            self._hub.publish(run_id, "run", summary)
        self._known[run_id] = _Known(summary, max([known.step, *(step.step for step in steps)]))
        if row.state in TERMINAL:
            self._hub.publish(run_id, "end", summary)
            self._hub.close(run_id)
