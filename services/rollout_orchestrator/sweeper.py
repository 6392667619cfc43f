"""Re-issues what is overdue, straight from Postgres: losing the whole broker loses no episode.

Invariants:
* only what missed its deadline by `GRACE_S` is touched, so that a typed failure that is on its way wins;
* replicas may sweep at once: each row is handled in a transaction of its own, which looks again under its
  lock; an advisory lock only keeps them from all reading the same lists;
* what fails with one row (a document that is no longer valid, a bug) stops neither the others nor the
  service.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

import structlog
from sqlalchemy import func, select

from sandpiper.bus.errors import Retry
from sandpiper.bus.outbox import OutboxRelay
from sandpiper.clock import Clock
from sandpiper.store.db.models import Episode, Group, Run
from sandpiper.topics import RUN_COMMANDS
from sandpiper.v1.common_pb2 import Failure
from sandpiper.v1.run_pb2 import CreateRun, RunCommand

from . import groups, results
from .admission import admit
from .events import finish
from .handlers import purge_processed
from .runs import end_if_spent, lock_run
from .states import IN_FLIGHT, RUN_OVER, EpisodeState, GroupState, RunState
from .work import Work

log = structlog.get_logger(__name__)

GRACE_S = 3.0
SWEEP_LOCK = 0x53574545
PURGE_EVERY_S = 300.0
KEEP_PUBLISHED_S = 3600.0
KEEP_PROCESSED_S = 8 * 24 * 3600.0

Transaction = Callable[[], AbstractAsyncContextManager[Work]]


@contextmanager
def contained(what: str, row_id: str) -> Iterator[None]:
    """Log an error of one row instead of raising it; database faults (Retry) pass, since they are of all."""
    try:
        yield
    except Retry:
        raise
    except Exception:
        log.exception("sweep_failed", what=what, id=row_id)


class Sweeper:
    """Deadlines, lost commands, admission: everything that happens because time passes."""

    def __init__(
        self, transaction: Transaction, relay: OutboxRelay, clock: Clock, every_s: float, resend_s: float
    ) -> None:
        self._transaction = transaction
        self._relay = relay
        self._clock = clock
        self._every_s = every_s
        self._resend_s = resend_s
        self._wake = asyncio.Event()
        self._purged_at = clock.time()
        self._reminded: dict[str, float] = {}

    def wake(self) -> None:
        """Admit now; call after a commit that may have made room."""
        self._wake.set()

    async def run(self) -> None:
        """Sweep until cancelled; a database that is away is waited for."""
        swept_at = 0.0
        while True:
            self._wake.clear()
            try:
                await self.admit_all()
                if self._clock.time() - swept_at >= self._every_s:
                    swept_at = self._clock.time()
                    await self.sweep()
            except Retry as error:
                log.warning("sweeper_waits", error=str(error)[:200])
                await asyncio.sleep(1.0)
            await self._pause()

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), self._every_s)
        except TimeoutError:
            return
        # Many results commit in a burst; one look after it is enough.
        await asyncio.sleep(0.02)

    async def admit_all(self) -> None:
        """Give every running run what its bounds allow."""
        async with self._transaction() as work:
            query = select(Run.id).where(Run.state == RunState.RUNNING.value).order_by(Run.created_at)
            ids = (await work.session.scalars(query)).all()
        for run_id in ids:
            with contained("admission", run_id):
                async with self._transaction() as work:
                    run = await lock_run(work, run_id)
                    if run is not None:
                        await admit(work, run)

    async def sweep(self) -> None:
        """One pass over everything that can be overdue."""
        async with self._transaction() as work:
            locked = select(func.pg_try_advisory_xact_lock(SWEEP_LOCK))
            if not (await work.session.scalars(locked)).one():
                return
            overdue = await self._overdue_episodes(work)
            late_groups = await self._late_groups(work)
            unanswered = await self._unanswered_groups(work)
            run_ids = list(
                (await work.session.scalars(select(Run.id).where(Run.finished_at.is_(None)))).all()
            )
        for handle, ids in (
            (self._retry_episode, overdue),
            (self._close_group, late_groups),
            (self._resubmit, unanswered),
            (self._look_at_run, run_ids),
        ):
            for row_id in ids:
                with contained(handle.__name__.lstrip("_"), row_id):
                    await handle(row_id)
        await self._purge()

    async def _overdue_episodes(self, work: Work) -> list[str]:
        query = select(Episode.id).where(
            Episode.state.in_([state.value for state in IN_FLIGHT]),
            Episode.stage_deadline < work.now - GRACE_S,
        )
        return list((await work.session.scalars(query.order_by(Episode.stage_deadline).limit(500))).all())

    async def _late_groups(self, work: Work) -> list[str]:
        query = select(Group.id).where(Group.state == GroupState.OPEN.value, Group.deadline < work.now)
        return list((await work.session.scalars(query)).all())

    async def _unanswered_groups(self, work: Work) -> list[str]:
        """Of running runs only: a paused run answers nothing, and its learner would collect the copies."""
        query = (
            select(Group.id)
            .join(Run, Run.id == Group.run_id)
            .where(
                Run.state == RunState.RUNNING.value,
                Group.state == GroupState.SUBMITTED.value,
                Group.submitted_at < work.now - self._resend_s,
            )
        )
        return list((await work.session.scalars(query)).all())

    async def _retry_episode(self, episode_id: str) -> None:
        async with self._transaction() as work:
            found = await results.find(work, episode_id)
            if found is None:
                return
            episode = found.episodes.episode
            if episode.state not in IN_FLIGHT or episode.stage_deadline >= work.now - GRACE_S:
                return
            if work.now >= episode.deadline:
                await self._give_up(work, found)
                return
            log.warning("stage_overdue", episode_id=episode.id, state=episode.state, attempt=episode.attempt)
            failure = Failure(boundary="deadline", reason=f"{episode.state}_deadline")
            await results.failed(work, found, failure)

    async def _give_up(self, work: Work, found: results.Found) -> None:
        """The whole-episode budget is spent: no verdict, so the episode fails and is replaced."""
        finish(work, found.run, found.episodes.episode, EpisodeState.FAILED, "deadline: episode_deadline")
        await work.session.flush()
        document = found.episodes.document
        await groups.replace_failed(work, found.run, document, found.group, found.task)

    async def _close_group(self, group_id: str) -> None:
        async with self._transaction() as work:
            group = await work.session.get(Group, group_id, with_for_update=True)
            if group is not None:
                run = await work.session.get_one(Run, group.run_id)
                await groups.close_if_ready(work, run, group, overdue=True)

    async def _resubmit(self, group_id: str) -> None:
        async with self._transaction() as work:
            group = await work.session.get(Group, group_id, with_for_update=True)
            if group is None or group.state != GroupState.SUBMITTED or group.submitted_at is None:
                return
            if group.submitted_at < work.now - self._resend_s:  # else another replica was faster
                await groups.submit(work, group)

    async def _look_at_run(self, run_id: str) -> None:
        async with self._transaction() as work:
            run = await lock_run(work, run_id)
            if run is None:
                return
            await end_if_spent(work, run)
            last = self._reminded.get(run.id, run.created_at)
            if run.policy_run_id == run.id and run.state not in RUN_OVER and work.now - last > self._resend_s:
                self._remind_learner(work, run)

    def _remind_learner(self, work: Work, run: Run) -> None:
        """The command that creates the run may be lost with the broker; the learner ignores repeats."""
        self._reminded[run.id] = work.now
        created = CreateRun(document_json=json.dumps(run.document), requested_by=run.requested_by)
        work.owe(RUN_COMMANDS, run.id, RunCommand(run_id=run.id, create=created))

    async def _purge(self) -> None:
        if self._clock.time() - self._purged_at < PURGE_EVERY_S:
            return
        self._purged_at = self._clock.time()
        await self._relay.purge(KEEP_PUBLISHED_S)
        async with self._transaction() as work:
            await purge_processed(work.session, work.now - KEEP_PROCESSED_S)
