"""The vLLM engine: AsyncLLM with weights that change between decode steps.

Invariants
* vLLM lives in processes of its own; they end with `stop`, and by themselves when this process dies.
* A hold aborts what is in flight at a step boundary. `generate` keeps the tokens that came with the
  version that made them and goes on with prompt + partial output once the gate opens: nothing is lost,
  and no key or value of older weights is read again.
* A segment (one vLLM request) never spans two versions.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import multiprocessing
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import structlog

from services.inference.engines.base import Generation, Sampling, StopRule, mix
from services.inference.engines.vllm_worker import OWNER, WorkerExtension
from services.inference.failures import BadRequest, EngineDied, EngineUnavailable

log = structlog.get_logger(__name__)

QUIET_S = 30.0
LOAD_S = 300.0


@dataclass(frozen=True)
class VllmOptions:
    """See `InferenceSettings` for what each means. `arguments` go to vLLM's AsyncEngineArgs, `environment`
    into the process before vLLM is imported (variables that are set already win)."""

    arguments: dict[str, Any]
    environment: dict[str, str]


class VllmEngine:
    """See `base.Engine`."""

    name = "vllm"
    verifiable = True

    def __init__(self, options: VllmOptions) -> None:
        self._options = options
        self._llm: Any = None
        self._processes: list[psutil.Process] = []
        self._version = 0
        self._stopped = False
        self._gate = asyncio.Event()
        self._holding = asyncio.Lock()
        self._active: set[str] = set()
        self._numbers = itertools.count()

    @property
    def alive(self) -> bool:
        """See `base.Engine`."""
        return self._llm is not None and not self._stopped and not self._llm.errored

    @property
    def max_model_len(self) -> int:
        """See `base.Engine`."""
        return int(self._llm.model_config.max_model_len)

    async def start(self, folder: Path, version: int) -> None:
        """See `base.Engine`. Takes tens of seconds, most of it imports and process starts."""
        building = asyncio.create_task(asyncio.to_thread(self._build, folder), name="vllm-start")
        try:
            self._llm = await asyncio.shield(building)
            self._processes = await asyncio.to_thread(_processes)
        except asyncio.CancelledError:
            await self._abandon(building)
            raise
        except Exception as error:
            raise EngineUnavailable(f"vLLM does not start: {error!r}") from error
        self._version = version
        self._gate.set()

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling, stops: StopRule) -> Generation:
        """See `base.Engine`."""
        if not self.alive:
            raise EngineDied("vLLM is not running")
        if not prompt_ids or len(prompt_ids) + sampling.max_new_tokens > self.max_model_len:
            raise BadRequest(f"{len(prompt_ids)} + {sampling.max_new_tokens} tokens do not fit this engine")
        generation = Generation()
        while generation.finish_reason is None:
            await self._gate.wait()
            with self._deaths_named():
                await self._segment(list(prompt_ids), sampling, stops, generation)
        return generation

    @contextlib.asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """See `base.Engine`."""
        async with self._holding:
            self._gate.clear()
            try:
                with self._deaths_named():
                    await self._llm.pause_generation(mode="abort", clear_cache=True)
                    await self._quiet()
                    await self._llm.resume_generation()
                yield
            finally:
                self._gate.set()

    async def load_policy(self, folder: Path, version: int) -> None:
        """See `base.Engine`. After a failure the weights are undefined, so the engine counts as dead."""
        try:
            await self._llm.collective_rpc("load_policy", timeout=LOAD_S, args=(str(folder),))
            await self._llm.reset_prefix_cache()
        except Exception as error:
            self._stopped = True
            raise EngineDied(f"vLLM could not load the weights: {error!r}") from error
        self._version = version

    async def score(self, ids: Sequence[int]) -> list[float]:
        """See `base.Engine`."""
        from vllm import SamplingParams, TokensPrompt  # noqa: PLC0415

        params = SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=0, detokenize=False)
        prompt, name = TokensPrompt(prompt_token_ids=list(ids)), f"score-{next(self._numbers)}"
        with self._deaths_named():
            outputs = [output async for output in self._llm.generate(prompt, params, name)]
        rows = outputs[-1].prompt_logprobs[1:]
        return [row[token].logprob for row, token in zip(rows, ids[1:], strict=True)]

    async def stop(self) -> None:
        """See `base.Engine`."""
        self._stopped = True
        llm, self._llm = self._llm, None
        if llm is None:
            return
        with contextlib.suppress(Exception):
            async with asyncio.timeout(1):
                await llm.abort(list(self._active))
        self._gate.set()
        await asyncio.to_thread(_shut_down, llm, self._processes)

    async def _segment(
        self, prompt: list[int], sampling: Sampling, stops: StopRule, generation: Generation
    ) -> None:
        if self._llm is None or self._stopped:
            raise EngineDied("vLLM was stopped")
        from vllm import TokensPrompt  # noqa: PLC0415

        name, version = f"turn-{next(self._numbers)}", self._version
        ids = TokensPrompt(prompt_token_ids=prompt + generation.output_ids)
        params = _params(sampling, stops, len(generation.output_ids))
        self._active.add(name)
        try:
            async with contextlib.aclosing(self._llm.generate(ids, params, name)) as outputs:
                async for output in outputs:
                    if _take(output.outputs[0], sampling, stops, generation, version):
                        return
        finally:
            self._active.discard(name)

    async def _quiet(self) -> None:
        """Wait until no segment is left; one that was being added during the pause is aborted here."""
        async with asyncio.timeout(QUIET_S):
            while self._active:
                await self._llm.abort(list(self._active))
                await asyncio.sleep(0.01)

    def _build(self, folder: Path) -> Any:
        for name, value in self._options.environment.items():
            os.environ.setdefault(name, value)
        os.environ[OWNER] = str(os.getpid())
        from vllm import AsyncEngineArgs  # noqa: PLC0415
        from vllm.v1.engine.async_llm import AsyncLLM  # noqa: PLC0415

        arguments = AsyncEngineArgs(
            model=str(folder),
            skip_tokenizer_init=True,
            generation_config="vllm",
            logprobs_mode="processed_logprobs",
            worker_extension_cls=f"{WorkerExtension.__module__}.{WorkerExtension.__qualname__}",
            disable_log_stats=True,
            **_within_model(self._options.arguments, folder),
        )
        return AsyncLLM.from_engine_args(arguments)

    async def _abandon(self, building: asyncio.Task[Any]) -> None:
        """The start was cancelled: kill its processes, so that the thread that waits for them ends too."""
        while not building.done():
            for child in multiprocessing.active_children():
                child.kill()
            await asyncio.wait({building}, timeout=0.5)
        with contextlib.suppress(Exception):
            building.result().shutdown(timeout=1)

    @contextlib.contextmanager
    def _deaths_named(self) -> Iterator[None]:
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError  # noqa: PLC0415

        try:
            yield
        except (EngineDeadError, EngineGenerateError) as error:
            raise EngineDied(f"vLLM: {error!r}") from error
        except TimeoutError as error:
            self._stopped = True
            raise EngineDied("vLLM did not let go of its requests") from error


def _within_model(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The arguments with `max_model_len` lowered to what the model can; vLLM would refuse more."""
    most = json.loads((folder / "config.json").read_text()).get("max_position_embeddings")
    wanted = arguments.get("max_model_len")
    return arguments | {"max_model_len": min(filter(None, (wanted, most)), default=None)}


def _processes() -> list[psutil.Process]:
    """vLLM's engine processes and all below them."""
    engines = [psutil.Process(child.pid) for child in multiprocessing.active_children()]
    return [process for engine in engines for process in (engine, *engine.children(recursive=True))]


def _shut_down(llm: Any, processes: list[psutil.Process]) -> None:
    """Let vLLM clean up, briefly; then nothing of it is left."""
    llm.shutdown(timeout=1)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=5)
    multiprocessing.active_children()  # reaps


def _params(sampling: Sampling, stops: StopRule, done: int) -> Any:
    """vLLM's parameters for what is left of a request after `done` tokens."""
    from vllm import SamplingParams  # noqa: PLC0415
    from vllm.sampling_params import RequestOutputKind  # noqa: PLC0415

    return SamplingParams(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        max_tokens=sampling.max_new_tokens - done,
        seed=mix(sampling.seed, done) >> 1,  # vLLM takes a signed 64-bit number
        stop_token_ids=sorted(stops.stop_ids),
        ignore_eos=True,
        logprobs=0,
        detokenize=False,
        output_kind=RequestOutputKind.DELTA if stops.needs_text else RequestOutputKind.FINAL_ONLY,
    )


def _take(output: Any, sampling: Sampling, stops: StopRule, generation: Generation, version: int) -> bool:
    """Add what came; True when the segment is over. It ends without a finish reason when it was aborted."""
    for token, row in zip(output.token_ids, output.logprobs or (), strict=True):
        generation.add(token, row[token].logprob, version)
        if stops.push(token):
            generation.finish_reason = "stop"
            return True
        if len(generation.output_ids) >= sampling.max_new_tokens:
            generation.finish_reason = "length"
            return True
    if output.finish_reason == "error":
        raise EngineDied("vLLM reported an error for this request")
    return output.finish_reason is not None
