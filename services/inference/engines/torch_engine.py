"""The torch engine: transformers with continuous batching, for tests and machines without vLLM.

Invariants
* One thread does all torch work; the event loop never blocks on it.
* A step and a hold exclude each other (`_stepping`), so a load always falls between two steps.
* Every request ends exactly once: with its generation, by cancellation, or with EngineDied.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import structlog
import torch

from services.inference.engines.base import Generation, Sampling, StopRule
from services.inference.engines.batch import Batch, Request
from services.inference.engines.model import Model
from services.inference.failures import BadRequest, EngineDied, EngineUnavailable, InferenceError

log = structlog.get_logger(__name__)
R = TypeVar("R")


@dataclass(frozen=True)
class TorchOptions:
    """`threads` None leaves torch's own choice; `kv_bytes` and `prefix_bytes` bound the memory of keys and
    values, of what runs and of what is kept for prompts that begin alike."""

    dtype: str
    device: str
    threads: int | None
    max_batch: int
    max_model_len: int | None
    kv_bytes: int
    prefix_bytes: int = 0


class TorchEngine:
    """See `base.Engine`."""

    name = "torch"
    verifiable = True

    def __init__(self, options: TorchOptions) -> None:
        self._options = options
        self._thread: ThreadPoolExecutor | None = None
        self._model: Model
        self._batch: Batch
        self._task: asyncio.Task[None] | None = None
        self._stepping = asyncio.Lock()
        self._work = asyncio.Event()
        self._results: dict[Request, asyncio.Future[Generation]] = {}
        self._alive = False

    @property
    def alive(self) -> bool:
        """See `base.Engine`."""
        return self._alive

    @property
    def max_model_len(self) -> int:
        """See `base.Engine`."""
        return min(self._options.max_model_len or self._model.max_positions, self._model.max_positions)

    async def start(self, folder: Path, version: int) -> None:
        """See `base.Engine`."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="torch-engine")
        try:
            await self._call(lambda: self._build(folder))
        except InferenceError:
            raise
        except Exception as error:
            raise EngineUnavailable(f"torch engine: {error!r}") from error
        self._batch.version = version
        self._alive = True
        self._task = asyncio.create_task(self._run(), name="torch-engine")

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling, stops: StopRule) -> Generation:
        """See `base.Engine`."""
        self._check_alive()
        request = Request(list(prompt_ids), sampling, stops)
        if not prompt_ids or request.room > min(self.max_model_len, self._batch.budget):
            raise BadRequest(f"{len(prompt_ids)} + {sampling.max_new_tokens} tokens do not fit this engine")
        future: asyncio.Future[Generation] = asyncio.get_running_loop().create_future()
        self._results[request] = future
        self._batch.submit(request)
        self._work.set()
        try:
            return await future
        finally:
            request.cancelled = True
            self._results.pop(request, None)

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """See `base.Engine`."""
        async with self._stepping:
            yield

    async def load_policy(self, folder: Path, version: int) -> None:
        """See `base.Engine`."""
        self._check_alive()
        try:
            await self._call(lambda: self._model.load(folder))
        except InferenceError:
            raise
        except Exception as error:
            self._die(error)
            raise EngineDied(f"loading failed half-way: {error!r}") from error
        self._batch.load(version)

    async def score(self, ids: Sequence[int]) -> list[float]:
        """See `base.Engine`."""
        self._check_alive()
        return await self._call(lambda: self._model.score(ids))

    async def stop(self) -> None:
        """See `base.Engine`."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._die(EngineDied("engine stopped"))
        if self._thread is not None:
            thread, self._thread = self._thread, None
            await asyncio.to_thread(thread.shutdown, wait=True)

    async def _run(self) -> None:
        while True:
            await self._work.wait()
            async with self._stepping:
                try:
                    ended = await self._call(self._batch.step)
                except Exception as error:
                    log.exception("torch_step_failed")
                    self._die(error)
                    return
                if not self._batch.busy:
                    self._work.clear()
            for request in ended:
                self._finish(request)

    def _build(self, folder: Path) -> None:
        if self._options.threads is not None:
            torch.set_num_threads(self._options.threads)
        self._model = Model(folder, self._options.dtype, self._options.device)
        self._batch = Batch(
            self._model, self._options.max_batch, self._options.kv_bytes, self._options.prefix_bytes
        )

    def _finish(self, request: Request) -> None:
        future = self._results.get(request)
        if future is not None and not future.done():
            future.set_result(request.generation)

    def _die(self, cause: Exception) -> None:
        self._alive = False
        for future in self._results.values():
            if not future.done():
                future.set_exception(EngineDied(f"{type(cause).__name__}: {cause}"))

    def _check_alive(self) -> None:
        if not self._alive:
            raise EngineDied("torch engine is not running")

    async def _call(self, work: Callable[[], R]) -> R:
        if self._thread is None:
            raise EngineDied("torch engine is not running")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
