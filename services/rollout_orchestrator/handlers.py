"""Message → function. Every handler runs inside one transaction with its dedupe row and outbox rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from sandpiper.bus.errors import Retry
from sandpiper.bus.message import Received
from sandpiper.clock import Clock
from sandpiper.store.db.engine import Sessions
from sandpiper.store.db.models import ProcessedMessage
from sandpiper.store.objects import ObjectStore
from sandpiper.telemetry import tracing
from sandpiper.topics import (
    GRADING_RESULTS,
    INFERENCE_RESULTS,
    POLICY_PUBLISHED,
    RUN_COMMANDS,
    SANDBOX_RESULTS,
    TASKS_SUBMITTED,
    TRAINING_STEPS,
    Topic,
)

from . import results, runs, tasksets
from .work import Work

CONSUMER = "rollout-orchestrator"

Function = Callable[[Work, Any], Awaitable[None]]

RESULTS: Mapping[Topic, Function] = {
    INFERENCE_RESULTS: results.generated,
    SANDBOX_RESULTS: results.executed,
    GRADING_RESULTS: results.graded,
}
CONTROL: Mapping[Topic, Function] = {
    RUN_COMMANDS: runs.command,
    POLICY_PUBLISHED: runs.policy_published,
    TRAINING_STEPS: runs.step_trained,
}


class Handlers:
    """Binds the tables to a database, and wakes what waits for a commit."""

    def __init__(
        self, sessions: Sessions, objects: ObjectStore, clock: Clock, committed: Callable[[], None]
    ) -> None:
        self._sessions = sessions
        self._objects = objects
        self._clock = clock
        self._committed = committed

    async def results(self, batch: list[Received[Any]]) -> None:
        """One transaction for a batch of results, in the order of their groups (no lock cycles)."""
        async with self.work() as work:
            fresh = await self._fresh(work, batch)
            for received in sorted(fresh, key=lambda item: item.message.ref.group_id):
                await _dispatch(work, RESULTS[received.topic], received)

    async def control(self, batch: list[Received[Any]]) -> None:
        """One transaction for each control message, in the order of arrival."""
        for received in batch:
            if received.topic is TASKS_SUBMITTED:
                await self._task_set(received)
                continue
            async with self.work() as work:
                if await self._fresh(work, [received]):
                    await _dispatch(work, CONTROL[received.topic], received)

    async def _task_set(self, received: Received[Any]) -> None:
        tasks = await tasksets.load(self._objects, received.message)
        async with self.work() as work:
            if await self._fresh(work, [received]):
                await tasksets.record(work, received.message, tasks)

    @asynccontextmanager
    async def work(self) -> AsyncIterator[Work]:
        """A transaction. Faults of the database (lost, deadlock, timeout) become Retry."""
        try:
            async with self._sessions.begin() as session:
                work = Work(session, self._clock)
                yield work
        except IntegrityError:
            raise
        except (DBAPIError, OSError) as error:
            raise Retry(f"database: {error}"[:500]) from error
        for effect in work.after_commit:
            effect()
        self._committed()

    async def _fresh(self, work: Work, batch: list[Received[Any]]) -> list[Received[Any]]:
        """The messages that no earlier transaction has processed; marks them processed in this one."""
        rows = [
            {"consumer": CONSUMER, "message_id": item.headers.message_id, "processed_at": work.now}
            for item in {item.headers.message_id: item for item in batch}.values()
        ]
        if not rows:
            return []
        statement = insert(ProcessedMessage).values(rows).on_conflict_do_nothing()
        returned = await work.session.scalars(statement.returning(ProcessedMessage.message_id))
        new = set(returned.all())
        unique = {item.headers.message_id: item for item in batch if item.headers.message_id in new}
        return list(unique.values())


async def _dispatch(work: Work, function: Function, received: Received[Any]) -> None:
    with tracing.span(f"{received.topic.name} process", received.headers.traceparent):
        await function(work, received.message)
        await work.session.flush()


async def purge_processed(session: AsyncSession, before: float) -> None:
    """Forget message ids that are too old to be delivered again."""
    await session.execute(delete(ProcessedMessage).where(ProcessedMessage.processed_at < before))
