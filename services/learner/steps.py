"""One step of one run: compute, commit, publish, say so.

Invariants:
* the order is: state and ledger, checkpoint manifest (the commit), policy, step record, events; only then
  may the messages of the groups be committed to Kafka;
* whatever is interrupted before the commit never happened; whatever is interrupted after it is completed by
  `heal`, on this learner or the next;
* a learner that lost the run commits nothing.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import structlog

from sandpiper.clock import Clock
from sandpiper.ids import new_id
from sandpiper.store.errors import StoreError
from sandpiper.telemetry import tracing
from sandpiper.v1.training_pb2 import TrainingStep
from services.learner import reporting
from services.learner.buffer import Take, Waiting
from services.learner.config import LearnerOptions
from services.learner.events import Events
from services.learner.publisher import Publisher
from services.learner.run import LearnerRun, Point
from services.learner.scratch import Scratch
from services.learner.state.checkpoints import CheckpointManifest, Checkpoints, encode_event
from services.learner.state.control import Claim, Controls
from services.learner.state.ledger import Consumed
from services.learner.training.trainer import Trainer
from services.learner.workshop import Workshop, export_policy, save_state

log = structlog.get_logger(__name__)


class LostRun(Exception):
    """Another learner has claimed the run."""


@dataclass(frozen=True)
class Parts:
    """What steps work with."""

    checkpoints: Checkpoints
    controls: Controls
    publisher: Publisher
    events: Events
    workshop: Workshop
    scratch: Scratch
    clock: Clock
    options: LearnerOptions


class Steps:
    """See the module's docstring. Failures of store and bus pass through; the caller then marks the run
    stale."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.token = new_id("learner")

    async def load(self, run: LearnerRun) -> Trainer:
        """The run's trainer at its committed point, from memory or from the store."""
        if run.trainer is not None and not run.trainer.dirty:
            return run.trainer
        run.trainer = None
        point = _point(run)
        parts = self._parts
        base = parts.scratch.base(run.run_id)
        await parts.publisher.fetch(run.run_id, 0, base)
        with parts.scratch.folder("restore") as folder:
            there = await parts.checkpoints.fetch_state(point.manifest, folder)
            build = parts.workshop.build
            run.trainer = await parts.workshop.do(build, point.document, base, folder if there else None)
        log.info("run_loaded", run_id=run.run_id, step=point.manifest.step)
        return run.trainer

    async def claim(self, run: LearnerRun) -> None:
        """Become the run's writer."""
        run.claim = await self._parts.controls.claim(run.run_id, self.token)

    async def heal(self, run: LearnerRun) -> None:
        """Complete the newest committed step: its policy, its record, its events."""
        point = _point(run)
        step = point.manifest.step
        if not await self._parts.publisher.exists(run.run_id, step):
            trainer = await self.load(run)
            with self._parts.scratch.folder("policy") as folder:
                await self._publish(run, trainer, point, folder)
        await self._parts.publisher.announce(run.run_id, step)
        if step:
            event = await self._parts.checkpoints.event(run.run_id, step)
            if event is None:
                event = point.manifest.training_step(point.blob)
                await self._parts.checkpoints.put_event(event)
            await self._parts.events.step(event)
        run.healed.set()

    async def discard(self, run: LearnerRun, groups: tuple[Waiting, ...]) -> None:
        """Report groups that can never be trained while there are not enough others for a step."""
        point = _point(run)
        ids = [group.group_id for group in groups]
        last = TrainingStep(run_id=run.run_id)
        if point.manifest.step:
            last = point.manifest.training_step(point.blob)
            last = await self._parts.checkpoints.event(run.run_id, point.manifest.step) or last
        await self._parts.events.discarded(last, ids)
        reporting.count_discarded(groups)
        log.info("groups_discarded", run_id=run.run_id, groups=len(ids), version=run.version)
        run.buffer.settle(ids)

    async def take(self, run: LearnerRun, take: Take) -> None:
        """Train one step on `take.groups`. Raises StepRefused, StepCancelled, LostRun, StoreError,
        BusUnavailable."""
        point = _point(run)
        began = time.monotonic()
        started_at = self._parts.clock.time()
        trainer = await self.load(run)
        algorithm = point.document.algorithm
        groups = take.taken(run.version, algorithm.max_staleness)
        links = reporting.traces(take, groups)
        step = run.version + 1
        with tracing.span("optimizer step", links=links, run_id=run.run_id, step=step) as span:
            metrics = await self._parts.workshop.do(trainer.step, groups, run.version, run.stop_step.is_set)
            metrics["fetch_s"] = sum(group.fetch_s for group in take.groups)
            event = reporting.event_of(run.run_id, step, take, groups, metrics, started_at)
            event.seconds = time.monotonic() - began
            await self._finish(run, trainer, take, event)
            own = tracing.traceparent_of(span.get_span_context())
        reporting.trace_episodes(links, own, started_at, self._parts.clock.time(), event)
        reporting.observe(event, take)

    async def _finish(self, run: LearnerRun, trainer: Trainer, take: Take, event: TrainingStep) -> None:
        began = time.monotonic()
        with ExitStack() as stack:
            folder = stack.enter_context(self._parts.scratch.folder("step"))
            point = await self._commit(run, trainer, take, event, folder)
            run.point = point
            run.healed.clear()
            event.metrics["checkpoint_s"] = time.monotonic() - began
            event.checkpoint.CopyFrom(point.blob)
            published = time.monotonic()
            await self._publish(run, trainer, point, folder / "policy")
        event.metrics["publish_s"] = time.monotonic() - published
        event.seconds += time.monotonic() - began
        await self._parts.checkpoints.put_event(event)
        await self._parts.publisher.announce(run.run_id, event.step)
        await self._parts.events.step(event)
        run.healed.set()
        run.buffer.settle(group.group_id for group in take.all)
        await self._prune(run, point)

    async def _commit(
        self, run: LearnerRun, trainer: Trainer, take: Take, event: TrainingStep, folder: Path
    ) -> Point:
        before, parts = _point(run), self._parts
        ledger = before.ledger.with_step(_consumed(event))
        state = folder / "state"
        await parts.workshop.do(save_state, trainer, state)
        attempt = new_id("try")
        files = await parts.checkpoints.put_state(run.run_id, event.step, attempt, state, ledger)
        await asyncio.to_thread(shutil.rmtree, state)
        claim = await self._still_ours(run)
        manifest = CheckpointManifest(
            run_id=run.run_id,
            step=event.step,
            claim=claim.number,
            token=claim.token,
            version=event.step,
            document=before.manifest.document,
            base=before.manifest.base,
            files=files,
            offsets=reporting.offsets(run.buffer.places(), take),
            event=encode_event(event),
            created_at=parts.clock.time(),
        )
        blob = await parts.checkpoints.commit(manifest)
        return Point(manifest, blob, ledger, before.document)

    async def _publish(self, run: LearnerRun, trainer: Trainer, point: Point, folder: Path) -> None:
        probe = await self._parts.workshop.do(
            export_policy, trainer, self._parts.scratch.base(run.run_id), folder
        )
        await self._still_ours(run)
        manifest = point.manifest
        await self._parts.publisher.store(run.run_id, manifest.version, manifest.base, folder, probe)

    async def _still_ours(self, run: LearnerRun) -> Claim:
        claim = run.claim
        if claim is None or not run.assigned or not await self._parts.controls.holds(run.run_id, claim):
            raise LostRun(run.run_id)
        return claim

    async def _prune(self, run: LearnerRun, point: Point) -> None:
        try:
            await self._parts.checkpoints.prune(run.run_id, self._parts.options.keep_checkpoints)
        except StoreError as error:
            log.warning("checkpoint_prune_failed", run_id=run.run_id, error=str(error))
        await self._parts.publisher.prune(run.run_id, point.document.limits.keep_policies)


def _point(run: LearnerRun) -> Point:
    if run.point is None:
        raise RuntimeError(f"run {run.run_id} was not read from the store")
    return run.point


def _consumed(event: TrainingStep) -> Consumed:
    return Consumed(
        event.step, tuple(event.group_ids), tuple(event.episode_ids), tuple(event.discarded_group_ids)
    )
