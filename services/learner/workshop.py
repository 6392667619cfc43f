"""The one thread that touches tensors, and the blocking work that it does.

Invariant: models and optimizers are built, moved and read only in this thread, one call at a time.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from safetensors.torch import load_file, save_file

from sandpiper.runs import RunDocument
from sandpiper.store.policies import Probe
from services.learner.config import LearnerOptions
from services.learner.policy.models import empty_model, export, load_model
from services.learner.training import placement
from services.learner.training.trainer import Trainer

R = TypeVar("R")


class Workshop:
    """Runs blocking functions in its thread."""

    def __init__(self, options: LearnerOptions) -> None:
        self._options = options
        self._thread = ThreadPoolExecutor(
            1, "learner", initializer=placement.use_threads, initargs=(options.threads,)
        )

    async def do(self, work: Callable[..., R], *arguments: Any) -> R:
        """The result of `work(*arguments)`, computed in the thread."""
        call = functools.partial(work, *arguments)
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def close(self) -> None:
        """Take no more work; what runs ends by itself."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def build(self, document: RunDocument, base: Path, state: Path | None) -> Trainer:
        """A trainer from the base policy's folder, or from its architecture and a checkpoint's state."""
        algorithm = document.algorithm
        options = self._options
        where = placement.choose(options.device, algorithm.dtype, options.bf16, options.micro_tokens)
        if state is None:
            return Trainer(load_model(base), document, where)
        trainer = Trainer(empty_model(base), document, where)
        trainer.restore(load_file(state))
        return trainer


def save_state(trainer: Trainer, path: Path) -> None:
    """Write weights, optimizer state and rng, fp32."""
    save_file({name: value.detach().cpu().contiguous() for name, value in trainer.tensors().items()}, path)


def export_policy(trainer: Trainer, base: Path, folder: Path) -> Probe:
    """Write the trainer's policy as a bf16 folder."""
    return export(trainer.model, base, folder)


def export_base(base: Path, folder: Path) -> Probe:
    """Write any model folder the way that policies are published."""
    return export(load_model(base), base, folder)
