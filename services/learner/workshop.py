"""The one thread that touches tensors, and the blocking work that it does.

Invariant: models and optimizers are built, moved and read only in this thread, one call at a time.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from safetensors.torch import load_file, save_file
from torch import Tensor

from sandpiper.runs import RunDocument
from sandpiper.store.policies import Probe
from services.learner.config import LearnerOptions
from services.learner.policy.models import empty_model, export, load_model
from services.learner.training import placement
from services.learner.training.trainer import Trainer

R = TypeVar("R")
SHARD_BYTES = 64 << 20


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

    def build(self, document: RunDocument, base: Path, state: Sequence[Path]) -> Trainer:
        """A trainer from the base policy's folder, or from its architecture and the shards of a state."""
        algorithm = document.algorithm
        options = self._options
        where = placement.choose(options.device, algorithm.dtype, options.bf16, options.micro_tokens)
        if not state:
            return Trainer(load_model(base), document, where)
        trainer = Trainer(empty_model(base), document, where)
        trainer.restore(load_shards(state))
        return trainer


def save_state(trainer: Trainer, folder: Path) -> list[Path]:
    """Write weights, optimizer state and rng, fp32, as shards."""
    return save_shards(trainer.tensors(), folder, "state")


def save_gradients(trainer: Trainer, folder: Path) -> list[Path]:
    """Write the gradients of the last step as shards."""
    return save_shards(trainer.gradients or {}, folder, "gradients")


def replay(trainer: Trainer, shards: Sequence[Path], step: int) -> None:
    """Apply the gradients of `step`."""
    trainer.replay(load_shards(shards), step)


def save_shards(tensors: Mapping[str, Tensor], folder: Path, name: str) -> list[Path]:
    """Write tensors into files of about SHARD_BYTES each, so that one lost request does not cost
    gigabytes."""
    paths: list[Path] = []
    shard: dict[str, Tensor] = {}
    size = 0
    for key, value in tensors.items():
        if shard and size + value.nbytes > SHARD_BYTES:
            paths.append(_save(shard, folder, name, len(paths)))
            shard, size = {}, 0
        shard[key] = value
        size += value.nbytes
    return [*paths, _save(shard, folder, name, len(paths))] if shard else paths


def load_shards(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The inverse."""
    return {key: value for path in paths for key, value in load_file(path).items()}


def _save(shard: Mapping[str, Tensor], folder: Path, name: str, number: int) -> Path:
    path = folder / f"{name}-{number:05}.safetensors"
    save_file({key: value.detach().cpu().contiguous() for key, value in shard.items()}, path)
    return path


def export_policy(trainer: Trainer, base: Path, folder: Path) -> Probe:
    """Write the trainer's policy as a bf16 folder."""
    return export(trainer.model, base, folder)


def export_base(base: Path, folder: Path) -> Probe:
    """Write any model folder the way that policies are published."""
    return export(load_model(base), base, folder)
