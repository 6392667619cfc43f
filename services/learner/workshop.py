"""The one thread that touches tensors, and the blocking work that it does.

Invariant: models and optimizers are built, moved and read only in this thread, one call at a time.
"""

from __future__ import annotations

import asyncio
import functools
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from safetensors.torch import load_file, save_file
from torch import Tensor

from sandpiper.runs import RunDocument
from sandpiper.store.policies import Probe
from services.learner.config import LearnerOptions
from services.learner.policy.models import empty_model, export, load_model, stored_dtype
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
        """A trainer from the base policy's folder, or from its architecture and the folder of a checkpoint's
        state."""
        algorithm = document.algorithm
        options = self._options
        where = placement.choose(options.device, algorithm.dtype, options.bf16, options.micro_tokens)
        if state is None:
            return Trainer(load_model(base), document, where)
        trainer = Trainer(empty_model(base), document, where)
        trainer.restore(load_state(state))
        return trainer


def save_state(trainer: Trainer, folder: Path) -> None:
    """Write weights, optimizer state and rng, fp32, a file per kind."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for name, value in trainer.tensors().items():
        kinds[name.partition("/")[0]][name] = value
    for kind, tensors in kinds.items():
        on_host = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        save_file(on_host, folder / f"{kind}.safetensors")


def load_state(folder: Path) -> dict[str, Tensor]:
    """What `save_state` wrote."""
    return {name: value for path in folder.glob("*.safetensors") for name, value in load_file(path).items()}


def export_policy(trainer: Trainer, base: Path, folder: Path) -> Probe:
    """Write the trainer's policy as a folder, in the type that the trainer computes in."""
    return export(trainer.model, base, folder, trainer.computes_in)


def export_base(base: Path, folder: Path) -> Probe:
    """Write any model folder the way that policies are published, without rounding."""
    return export(load_model(base), base, folder, stored_dtype(base))
