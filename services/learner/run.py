"""What the learner knows of one run.

Invariants:
* `point` (manifest and ledger) always describes a committed checkpoint; what a trainer holds beyond it is
  uncommitted and thrown away on any failure;
* a run that `needs_refresh` takes no step before it was read anew from the object store;
* `stop_step` is set exactly while the step under way must not go on.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandpiper.runs import RunDocument
from sandpiper.v1.common_pb2 import Blob
from services.learner.buffer import Buffer, Take
from services.learner.state.checkpoints import CheckpointManifest
from services.learner.state.control import Claim
from services.learner.state.ledger import Ledger

if TYPE_CHECKING:
    from services.learner.training.trainer import Trainer


@dataclass(frozen=True)
class Point:
    """A committed checkpoint."""

    manifest: CheckpointManifest
    blob: Blob
    ledger: Ledger
    document: RunDocument


@dataclass
class LearnerRun:
    """See the module's docstring."""

    run_id: str
    point: Point | None = None
    buffer: Buffer = field(default_factory=Buffer)
    trainer: Trainer | None = None
    paused: bool = False
    ended: bool = False
    assigned: bool = True
    """Its partition of `trajectories` is ours."""
    partition: int | None = None
    claim: Claim | None = None
    """Our last one; another learner's may be newer."""
    needs_refresh: bool = True
    healed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while the events of the newest checkpoint are known to be out."""
    stop_step: threading.Event = field(default_factory=threading.Event)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Commands of one run, one after another."""
    visited_at: float = 0.0
    polled_at: float = 0.0
    failures: int = 0
    """In a row, other than outages."""
    outages: int = 0
    not_before: float = 0.0

    @property
    def version(self) -> int:
        """Of the newest committed policy."""
        return self.point.manifest.version if self.point else 0

    @property
    def idle(self) -> bool:
        """True when it is not to be trained here, for now or for good."""
        return self.ended or self.paused or not self.assigned

    @property
    def spent(self) -> bool:
        """True when the step budget is used up: what still arrives waits for the run's end."""
        return self.point is not None and self.point.manifest.step >= self.point.document.budget.steps

    def next_take(self) -> Take:
        """What the next step would take."""
        assert self.point is not None
        algorithm = self.point.document.algorithm
        return self.buffer.take(algorithm.groups_per_step, self.version, algorithm.max_staleness)

    def wants_visit(self, now: float) -> bool:
        """True when the scheduler has something to do for this run."""
        if self.point is None or now < self.not_before:
            return False
        if self.needs_refresh and self.assigned and not self.ended:
            return True
        if self.idle:
            return self.trainer is not None
        if self.spent or not len(self.buffer):
            return False
        take = self.next_take()
        return take.complete or bool(take.discarded)

    def mark_stale(self) -> None:
        """Believe nothing in memory any more."""
        self.needs_refresh = True
        self.healed.clear()

    def end(self) -> None:
        """No more training; everyone who waits is let go."""
        self.ended = True
        self.stop_step.set()
        self.buffer.settle_all()
        self.healed.set()

    def lose(self) -> None:
        """Another learner has, or may have, this run now. Who waits goes on waiting: the run may come
        back."""
        self.assigned = False
        self.stop_step.set()
        self.mark_stale()

    def regain(self) -> None:
        """The run's partition is ours again."""
        self.assigned = True
        self.stop_step.clear()
        self.mark_stale()
