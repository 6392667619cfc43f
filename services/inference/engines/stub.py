"""The stub engine: fixed replies instead of a model, for measuring everything around it.

Its log-probabilities are constants and its `score` means nothing; results carry `engine = "stub"`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from services.inference.engines.base import Generation, Sampling, StopRule, mix
from services.inference.failures import EngineDied
from services.inference.prompts.tokenizer import ChatTokenizer

LOGPROB = -0.5


@dataclass(frozen=True)
class StubOptions:
    """`replies`: one is chosen by the request's seed; `tokens_per_s` paces each request."""

    replies: tuple[str, ...]
    tokens_per_s: float
    max_model_len: int | None


class StubEngine:
    """See `base.Engine`."""

    name = "stub"
    verifiable = False

    def __init__(self, options: StubOptions) -> None:
        self._options = options
        self._replies: list[list[int]] = []
        self._end: list[int] = []
        self._version = 0
        self._alive = False
        self._gate = asyncio.Event()

    @property
    def alive(self) -> bool:
        """See `base.Engine`."""
        return self._alive

    @property
    def max_model_len(self) -> int:
        """See `base.Engine`."""
        return self._options.max_model_len or 32768

    async def start(self, folder: Path, version: int) -> None:
        """See `base.Engine`."""
        tokenizer = await asyncio.to_thread(ChatTokenizer, folder)
        self._replies = [tokenizer.encode(reply) for reply in self._options.replies]
        self._end = sorted(tokenizer.stop_ids)[:1]
        self._version = version
        self._alive = True
        self._gate.set()

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling, stops: StopRule) -> Generation:
        """See `base.Engine`."""
        generation = Generation()
        reply = self._replies[mix(sampling.seed, 0) % len(self._replies)]
        await asyncio.sleep(min(len(reply), sampling.max_new_tokens) / self._options.tokens_per_s)
        for token in [*reply, *self._end][: sampling.max_new_tokens]:
            await self._gate.wait()
            if not self._alive:
                raise EngineDied("engine stopped")
            generation.add(token, LOGPROB, self._version)
            if stops.push(token):
                generation.finish_reason = "stop"
                return generation
        generation.finish_reason = "length"
        return generation

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """See `base.Engine`."""
        self._gate.clear()
        try:
            yield
        finally:
            self._gate.set()

    async def load_policy(self, folder: Path, version: int) -> None:
        """See `base.Engine`."""
        self._version = version

    async def score(self, ids: Sequence[int]) -> list[float]:
        """See `base.Engine`."""
        return [LOGPROB] * (len(ids) - 1)

    async def stop(self) -> None:
        """See `base.Engine`."""
        self._alive = False
        self._gate.set()
