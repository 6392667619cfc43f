"""All runs that this process has heard of, and how they are read from the object store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sandpiper.bus.errors import Reject
from sandpiper.runs import RunDocument
from services.learner.run import LearnerRun, Point
from services.learner.state.checkpoints import Checkpoints
from services.learner.state.control import Controls


class Registry:
    """Runs by id."""

    def __init__(self, checkpoints: Checkpoints, controls: Controls) -> None:
        self._checkpoints = checkpoints
        self._controls = controls
        self._runs: dict[str, LearnerRun] = {}

    def __iter__(self) -> Iterator[LearnerRun]:
        return iter(list(self._runs.values()))

    def slot(self, run_id: str) -> LearnerRun:
        """The run, perhaps not read yet."""
        return self._runs.setdefault(run_id, LearnerRun(run_id))

    async def known(self, run_id: str, partition: int) -> LearnerRun:
        """The run, read from the store when this process has not. Raises Reject for one that never was."""
        run = self.slot(run_id)
        run.partition = partition
        if run.point is None and not run.ended:
            async with run.lock:
                await self._first_look(run)
        return run

    async def _first_look(self, run: LearnerRun) -> None:
        if run.point is not None or run.ended:
            return
        await self.read_control(run)
        if not run.ended and not await self.read_point(run):
            raise Reject("handler_error", f"run {run.run_id} has no checkpoint: it was never created here")

    async def read_control(self, run: LearnerRun) -> None:
        """Do what the last command said, whichever learner it was given to."""
        control = await self._controls.get(run.run_id)
        run.paused = control is not None and control.state == "paused"
        if control is not None and control.state == "ended" and not run.ended:
            run.end()

    async def read_point(self, run: LearnerRun) -> bool:
        """Read the newest checkpoint; False when there is none."""
        found = await self._checkpoints.latest(run.run_id)
        if found is None:
            return False
        manifest, blob = found
        ledger = await self._checkpoints.ledger(manifest)
        document = RunDocument.model_validate_json(manifest.document)
        run.point = Point(manifest, blob, ledger, document)
        return True

    def assign(self, partitions: Iterable[int]) -> None:
        """Our partitions of `trajectories` are these now."""
        ours = frozenset(partitions)
        for run in self:
            if run.partition is None:
                continue
            if run.assigned and run.partition not in ours:
                run.lose()
            elif not run.assigned and run.partition in ours:
                run.regain()
