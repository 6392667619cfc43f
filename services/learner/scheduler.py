"""Whose turn it is: one step at a time, runs in turn, failures contained.

Invariants:
* the run that was not visited for longest goes first;
* no failure of one run ends the service or another run; a run that keeps failing is given up with an event;
* after `drain` no step runs and nobody's message was committed without its group being consumed.
"""

from __future__ import annotations

import asyncio
import random
import traceback

import structlog

from sandpiper.bus.errors import is_transient
from sandpiper.store.errors import StoreError
from services.learner.config import LearnerOptions
from services.learner.registry import Registry
from services.learner.run import LearnerRun
from services.learner.state.control import Control, Controls
from services.learner.steps import LostRun, Parts, Steps
from services.learner.training.trainer import StepCancelled, StepRefused

log = structlog.get_logger(__name__)

MAX_PAUSE_S = 60.0
MAX_BUGS = 3
"""Failures of a run in a row that are not an outage."""


class Scheduler:
    """See the module's docstring."""

    def __init__(
        self, registry: Registry, steps: Steps, parts: Parts, rng: random.Random | None = None
    ) -> None:
        self._registry = registry
        self._steps = steps
        self._parts = parts
        self._options: LearnerOptions = parts.options
        self._controls: Controls = parts.controls
        self._clock = parts.clock
        self._rng = rng or random.Random()
        self._wake = asyncio.Event()
        self._stopping = False
        self._idle = asyncio.Event()
        self._idle.set()

    def wake(self) -> None:
        """Something changed: look again."""
        self._wake.set()

    async def run(self) -> None:
        """Take steps until `drain`."""
        while not self._stopping:
            self._wake.clear()
            run = self._next()
            if run is not None:
                self._idle.clear()
                try:
                    await self._visit(run)
                finally:
                    self._idle.set()
            else:
                await self._pause()

    async def drain(self, timeout: float) -> None:
        """Stop between two micro-batches, or after the commit under way; then free who waits, uncommitted."""
        self._stopping = True
        for run in self._registry:
            run.stop_step.set()
        self.wake()
        try:
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        except TimeoutError:
            log.warning("step_cut_by_drain")
        for run in self._registry:
            run.buffer.abandon()

    def _next(self) -> LearnerRun | None:
        now = self._clock.monotonic()
        ready = [run for run in self._registry if run.wants_visit(now)]
        return min(ready, key=lambda run: run.visited_at, default=None)

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(min(1.0, self._options.poll_s)):
                await self._wake.wait()
        except TimeoutError:
            await self._poll_controls()

    async def _poll_controls(self) -> None:
        now = self._clock.monotonic()
        for run in self._registry:
            if len(run.buffer) and not run.ended and now - run.polled_at >= self._options.poll_s:
                run.polled_at = now
                try:
                    await self._registry.read_control(run)
                except StoreError as error:
                    log.info("control_unread", run_id=run.run_id, error=str(error))

    async def _visit(self, run: LearnerRun) -> None:
        run.visited_at = self._clock.monotonic()
        try:
            if run.needs_refresh and run.assigned and not run.ended:
                await self._refresh(run)
            elif run.idle:
                await self._unload(run)
            else:
                await self._step(run)
        except StepCancelled:
            await self._unload(run)
        except LostRun:
            log.warning("run_lost", run_id=run.run_id)
            await self._unload(run)
            run.mark_stale()
            self._put_off(run)
        except StepRefused as refusal:
            await self._give_up(run, refusal.reason, refusal.detail)
        except Exception as error:
            await self._failed(run, error)

    async def _refresh(self, run: LearnerRun) -> None:
        await self._registry.read_control(run)
        if run.ended:
            return
        await self._unload(run)
        await self._steps.claim(run)
        if not await self._registry.read_point(run):
            if run.point is not None:
                raise StoreError(f"run {run.run_id} has lost its checkpoints")
            # Its creation is under way, or its command is still to come.
            self._put_off(run)
            return
        run.needs_refresh = False
        run.stop_step.clear()
        await self._steps.heal(run)
        ledger = run.point.ledger if run.point else None
        if ledger is not None:
            run.buffer.drop_if(lambda group_id: ledger.step_of(group_id) is not None)

    async def _step(self, run: LearnerRun) -> None:
        await self._registry.read_control(run)
        if run.idle:
            return
        take = run.next_take()
        if not take.complete:
            if take.discarded:
                await self._steps.discard(run, take.discarded)
            return
        await self._make_room(run)
        await self._steps.take(run, take)
        run.failures = run.outages = 0

    async def _make_room(self, run: LearnerRun) -> None:
        others = [other for other in self._registry if other.trainer is not None and other is not run]
        others.sort(key=lambda other: other.visited_at)
        for other in others[: max(0, len(others) + 1 - self._options.loaded_runs)]:
            await self._unload(other)

    async def _unload(self, run: LearnerRun) -> None:
        trainer, run.trainer = run.trainer, None
        if trainer is not None:
            await self._parts.workshop.do(trainer.release)
            log.info("run_unloaded", run_id=run.run_id)
        # Fetched again, by digest, should the run be loaded again: a run may end while it is not.
        await asyncio.to_thread(self._parts.scratch.drop_base, run.run_id)

    async def _failed(self, run: LearnerRun, error: Exception) -> None:
        await self._unload(run)
        run.mark_stale()
        if is_transient(error):
            log.warning("step_put_off", run_id=run.run_id, error=repr(error))
            self._put_off(run)
            return
        run.failures += 1
        log.error("step_failed", run_id=run.run_id, failures=run.failures, exc_info=error)
        if run.failures < MAX_BUGS:
            self._put_off(run)
        else:
            detail = "".join(traceback.format_exception_only(error)).strip()
            await self._give_up(run, "step_failed", detail)

    def _put_off(self, run: LearnerRun) -> None:
        run.outages += 1
        pause = min(MAX_PAUSE_S, self._options.retry_first_s * 2.0 ** min(run.outages - 1, 16))
        run.not_before = self._clock.monotonic() + pause * self._rng.uniform(0.5, 1.0)

    async def _give_up(self, run: LearnerRun, reason: str, detail: str) -> None:
        """Say that the run failed, then forget it. An outage meanwhile: the same again later."""
        log.error("run_given_up", run_id=run.run_id, reason=reason, detail=detail)
        try:
            await self._parts.events.failed(run.run_id, run.version, reason, detail)
            await self._controls.put(run.run_id, Control(state="ended", reason=reason))
        except Exception as error:
            if not is_transient(error):
                raise
            run.mark_stale()
            self._put_off(run)
            return
        run.end()
        await self._unload(run)
