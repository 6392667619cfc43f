"""Weights and optimizer state, in and out of the object store.

Most steps store only their gradients: a third of the state's bytes in fp32, a sixth in bf16, and AdamW turns
them into the same state again. Hashing and sending is what a checkpoint costs, so this is most of its time.
Every `full_every` steps the whole state is stored, so that a restore replays few.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from services.learner.run import Point
from services.learner.scratch import Scratch
from services.learner.state.checkpoints import Checkpoints, Lineage, Logged, StoredFile
from services.learner.training.trainer import Trainer
from services.learner.workshop import Workshop, replay, save_gradients, save_state

log = structlog.get_logger(__name__)

TRANSFERS = 4
"""Objects on their way at once."""


@dataclass(frozen=True)
class Vault:
    """Saves and restores trainers."""

    checkpoints: Checkpoints
    workshop: Workshop
    scratch: Scratch
    full_every: int

    async def save(self, run_id: str, step: int, attempt: str, trainer: Trainer, before: Lineage) -> Lineage:
        """Store what makes `step` out of `before`, or all of it. Nothing is valid until the manifest is."""
        full = trainer.gradients is None or step - before.origin_step >= self.full_every
        with self.scratch.folder("save") as folder:
            paths = await self.workshop.do(save_state if full else save_gradients, trainer, folder)
            gate = asyncio.Semaphore(TRANSFERS)
            stored = await asyncio.gather(*(self._put(gate, run_id, step, attempt, path) for path in paths))
        files = {path.name: file for path, file in zip(paths, stored, strict=True)}
        if full:
            return Lineage(origin_step=step, origin=files)
        return before.model_copy(update={"log": (*before.log, Logged(step=step, files=files))})

    async def load(self, point: Point, base: Path) -> Trainer:
        """A trainer at a committed point; `base` is the folder of policy version 0."""
        lineage = point.manifest.lineage
        with self.scratch.folder("restore") as folder:
            state = await self._fetch(lineage.origin, folder)
            trainer = await self.workshop.do(self.workshop.build, point.document, base, state)
        for logged in lineage.log:
            with self.scratch.folder("replay") as folder:
                gradients = await self._fetch(logged.files, folder)
                await self.workshop.do(replay, trainer, gradients, logged.step)
        return trainer

    async def _put(
        self, gate: asyncio.Semaphore, run_id: str, step: int, attempt: str, path: Path
    ) -> StoredFile:
        async with gate:
            stored = await self.checkpoints.put_file(run_id, step, attempt, path)
            await asyncio.to_thread(path.unlink)
            return stored

    async def _fetch(self, files: Mapping[str, StoredFile], folder: Path) -> list[Path]:
        gate = asyncio.Semaphore(TRANSFERS)

        async def one(name: str, file: StoredFile) -> Path:
            async with gate:
                await self.checkpoints.fetch(file, folder / name)
            return folder / name

        return list(await asyncio.gather(*(one(name, file) for name, file in files.items())))
