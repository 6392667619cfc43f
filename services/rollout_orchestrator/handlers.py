"""Message → function. Every handler runs inside one transaction with its dedupe row and outbox rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
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

PASSING = frozenset({"40001", "40P01", "53300", "55P03", "57014", "57P01", "57P02", "57P03"})
"""SQLSTATEs that pass: serialization failure, deadlock, too many connections, lock not available, statement
cancelled by its timeout, server shutting down, crashed, starting up."""

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
            await self._control(received)
        # A new policy version owes nobody a message, but makes room for admission.
        self._committed()

    async def _control(self, received: Received[Any]) -> None:
        if received.topic is TASKS_SUBMITTED:
            await self._task_set(received)
            return
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
        """A transaction. Faults of the database (lost, deadlock, timeout) become Retry; an error that the
        same statement would meet again (a bug, a value that no column takes) stays what it is."""
        try:
            async with self._sessions.begin() as session:
                work = Work(session, self._clock)
                yield work
        except (DBAPIError, OSError) as error:
            if isinstance(error, DBAPIError) and not _is_passing(error):
                raise
            raise Retry(f"database: {error}"[:500]) from error
        for effect in work.after_commit:
            effect()
        if work.owes:
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


def _is_passing(error: DBAPIError) -> bool:
    if error.connection_invalidated or isinstance(error, OperationalError | InterfaceError):
        return True
    return getattr(error.orig, "sqlstate", None) in PASSING


async def _dispatch(work: Work, function: Function, received: Received[Any]) -> None:
    with tracing.span(f"{received.topic.name} process", received.headers.traceparent):
        work.cause = received.headers.message_id
        await function(work, received.message)
        await work.session.flush()


async def purge_processed(session: AsyncSession, before: float) -> None:
    """Forget message ids that are too old to be delivered again."""
    await session.execute(delete(ProcessedMessage).where(ProcessedMessage.processed_at < before))
