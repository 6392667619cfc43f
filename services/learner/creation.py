"""CreateRun: base policy to version 0, and the run's first checkpoint.

Invariant: the order is policy version 0, checkpoint 0, control, event; a repetition completes what is
missing and changes nothing that is there.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from sandpiper.clock import Clock
from sandpiper.runs import RunDocument
from services.learner.events import Events
from services.learner.policy.errors import PolicyUnavailable
from services.learner.policy.sources import Sources, name_of
from services.learner.publisher import Publisher
from services.learner.registry import Registry
from services.learner.run import LearnerRun
from services.learner.scratch import Scratch
from services.learner.state.checkpoints import CheckpointManifest, Checkpoints
from services.learner.state.control import Control, Controls
from services.learner.workshop import Workshop, export_base

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Creation:
    """Creates runs. Failures of store and bus pass through, so that the command is tried again."""

    sources: Sources
    publisher: Publisher
    checkpoints: Checkpoints
    controls: Controls
    events: Events
    registry: Registry
    workshop: Workshop
    scratch: Scratch
    clock: Clock

    async def create(self, run: LearnerRun, document: RunDocument) -> None:
        """Make `run` ready to be trained or evaluated. An evaluation of another run's policy needs
        nothing."""
        if document.mode == "eval" and document.policy.kind == "run":
            return
        await self.registry.read_control(run)
        if run.ended:
            return
        try:
            await self._ensure(run, document)
        except PolicyUnavailable as error:
            await self._fail(run, error)

    async def _ensure(self, run: LearnerRun, document: RunDocument) -> None:
        if not await self.checkpoints.steps(run.run_id):
            if not await self.publisher.exists(run.run_id, 0):
                await self._publish_base(run, document)
            await self.checkpoints.commit(self._first(run, document))
        await self.controls.put(run.run_id, Control(state="paused" if run.paused else "active"))
        if run.point is None:  # else the scheduler has it, and may be ahead of what is read here
            await self.registry.read_point(run)
        log.info("run_created", run_id=run.run_id, base=name_of(document.policy), version=run.version)

    async def _publish_base(self, run: LearnerRun, document: RunDocument) -> None:
        base = await self.sources.folder(document.policy)
        with self.scratch.folder("version0") as folder:
            probe = await self.workshop.do(export_base, base, folder)
            await self.publisher.store(run.run_id, 0, name_of(document.policy), folder, probe)

    def _first(self, run: LearnerRun, document: RunDocument) -> CheckpointManifest:
        return CheckpointManifest(
            run_id=run.run_id,
            step=0,
            version=0,
            document=document.model_dump_json(),
            base=name_of(document.policy),
            created_at=self.clock.time(),
        )

    async def _fail(self, run: LearnerRun, error: PolicyUnavailable) -> None:
        log.warning("policy_unavailable", run_id=run.run_id, reason=error.reason, detail=error.detail)
        reason = f"policy_{error.reason}"
        await self.events.failed(run.run_id, 0, reason, error.detail)
        await self.controls.put(run.run_id, Control(state="ended", reason=reason))
        run.end()
