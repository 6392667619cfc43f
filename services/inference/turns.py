"""One turn: prior tokens and messages in, a stored `TurnTokens` and its `TurnGenerated` out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog

from sandpiper.clock import Clock
from sandpiper.store.errors import CorruptObject, StoreError
from sandpiper.store.objects import ObjectStore
from sandpiper.telemetry import metrics, tracing
from sandpiper.v1.inference_pb2 import GenerateTurn, TurnGenerated, TurnTokens
from services.inference.engines.base import Generation, Sampling
from services.inference.failures import (
    BadRequest,
    DeadlineExpired,
    EngineDied,
    InferenceError,
    PolicyUnavailable,
)
from services.inference.policies.loader import Resident
from services.inference.policies.scheduler import Scheduler
from services.inference.prompts.build import Prompt, build_prompt, room
from services.inference.prompts.stopping import Stops
from services.inference.prompts.tokens import parse_prior, turn_tokens

log = structlog.get_logger(__name__)
TRIES = 3


@dataclass(frozen=True)
class Turn:
    """A generated turn before it is stored."""

    prompt: Prompt
    generation: Generation
    finish_reason: str
    resident: Resident
    engine: str
    text: str
    queued_s: float
    generate_s: float


class Turns:
    """Generates turns. Safe to call concurrently."""

    def __init__(self, scheduler: Scheduler, objects: ObjectStore, clock: Clock) -> None:
        self._scheduler = scheduler
        self._objects = objects
        self._clock = clock

    async def run(self, request: GenerateTurn, deadline: float) -> TurnGenerated:
        """The result of a request; a failure is typed and in it, never raised. `deadline` is unix seconds."""
        began = self._clock.monotonic()
        try:
            async with _until(deadline - self._clock.time()):
                turn = await self._generate(request, began)
                result = await self._store(request, turn)
        except InferenceError as error:
            return self._failed(request, error, began)
        except Exception as error:  # a fault of ours; whoever waits for the turn is told all the same
            log.exception("turn_broke", request_id=request.request_id)
            return self._failed(request, InferenceError(repr(error)), began)
        metrics.GENERATION_SECONDS.observe(self._clock.monotonic() - began)
        metrics.TOKENS_GENERATED.inc(result.output_tokens)
        metrics.TOKENS_PROMPT.inc(result.prompt_tokens)
        return result

    def _failed(self, request: GenerateTurn, error: InferenceError, began: float) -> TurnGenerated:
        log.warning("turn_failed", request_id=request.request_id, reason=error.reason, error=str(error))
        metrics.INFRA_FAILURES.labels(error.boundary, error.reason).inc()
        return TurnGenerated(
            ref=request.ref,
            request_id=request.request_id,
            finish_reason="failed",
            queued_s=self._clock.monotonic() - began,
            failure=error.to_failure(),
        )

    async def _generate(self, request: GenerateTurn, began: float) -> Turn:
        """Generate, again from the start when the engine died under it."""
        prior = await self._prior(request)
        for attempt in range(1, TRIES + 1):
            try:
                async with self._scheduler.lease(request.policy):
                    return await self._with_engine(request, prior, began)
            except EngineDied as error:
                log.warning("engine_died_under_turn", request_id=request.request_id, error=str(error))
                if attempt == TRIES:
                    raise
        raise AssertionError("unreachable")

    async def _with_engine(self, request: GenerateTurn, prior: TurnTokens | None, began: float) -> Turn:
        engine, tokenizer = self._scheduler.loader.engine, self._resident().tokenizer
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        prompt = build_prompt(tokenizer, prior, messages, request.assistant_prefix)
        sampling = _sampling(request, len(prompt.ids), engine.max_model_len)
        start = self._clock.monotonic()
        generation = Generation()
        if sampling.max_new_tokens:
            stops = Stops(tokenizer.stop_ids, list(request.sampling.stop), tokenizer.decode)
            with metrics.GENERATIONS_RUNNING.track_inprogress(), tracing.span("generate", engine=engine.name):
                generation = await engine.generate(prompt.ids, sampling, stops)
        return Turn(
            prompt=prompt,
            generation=generation,
            finish_reason=generation.finish_reason or "context_limit",
            resident=self._resident(),
            engine=engine.name,
            text=tokenizer.text(generation.output_ids),
            queued_s=start - began,
            generate_s=self._clock.monotonic() - start,
        )

    async def _prior(self, request: GenerateTurn) -> TurnTokens | None:
        if not request.prior.uri:
            if request.ref.turn:
                raise BadRequest(f"turn {request.ref.turn} names no prior tokens")
            return None
        try:
            return parse_prior(await self._objects.get(request.prior))
        except CorruptObject as error:
            raise PolicyUnavailable("corrupt", f"prior tokens: {error}") from error
        except (StoreError, ValueError) as error:
            raise PolicyUnavailable("unavailable", f"prior tokens: {error}") from error

    async def _store(self, request: GenerateTurn, turn: Turn) -> TurnGenerated:
        """Tokens first, by their digest: a second generation of the same turn never replaces the first."""
        tokens = turn_tokens(turn.prompt, turn.generation, request.policy.run_id)
        ref = request.ref
        try:
            blob = await self._objects.put_by_digest(
                f"tokens/{ref.episode_id}/{ref.attempt}/{ref.turn}", tokens.SerializeToString()
            )
        except StoreError as error:
            raise PolicyUnavailable("unavailable", f"tokens not stored: {error}") from error
        versions = turn.generation.versions or [turn.resident.version]
        return TurnGenerated(
            ref=ref,
            request_id=request.request_id,
            text=turn.text,
            finish_reason=turn.finish_reason,
            tokens=blob,
            prompt_tokens=len(turn.prompt.ids),
            output_tokens=len(turn.generation.output_ids),
            version_min=min(versions),
            version_max=max(versions),
            queued_s=turn.queued_s,
            generate_s=turn.generate_s,
            engine=turn.engine,
            weights_sha256=turn.resident.local.manifest.weights_sha256,
        )

    def _resident(self) -> Resident:
        resident = self._scheduler.loader.resident
        if resident is None:
            raise EngineDied("the policy was lost")
        return resident


def _sampling(request: GenerateTurn, prompt_tokens: int, engine_limit: int) -> Sampling:
    wanted = request.sampling
    if not (0 <= wanted.temperature <= 100 and 0 <= wanted.top_p <= 1) or not wanted.max_new_tokens:
        raise BadRequest("sampling: temperature 0..100, top_p 0..1 and at least one new token")
    return Sampling(
        temperature=wanted.temperature,
        top_p=wanted.top_p or 1.0,
        max_new_tokens=room(prompt_tokens, wanted.max_new_tokens, wanted.context_tokens, engine_limit),
        seed=wanted.seed,
    )


@asynccontextmanager
async def _until(seconds: float) -> AsyncIterator[None]:
    """A deadline that raises DeadlineExpired; one in the past lets nothing begin."""
    if seconds <= 0:
        raise DeadlineExpired("the deadline had passed before generation began")
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise DeadlineExpired("the deadline passed during generation") from error
