"""What the service needs of an engine.

Invariants of every engine
* `generate` may be called concurrently; requests join and leave the batch between decode steps.
* Each output token carries the policy version whose weights produced it, and the natural logarithm of its
  probability under the distribution that it was drawn from: softmax(logits / temperature), cut to the
  nucleus and renormalised where `top_p` < 1. With `top_p` = 1 (the default) that is what a learner
  recomputes as log_softmax(logits / temperature). Temperature 0 is greedy and reports log_softmax(logits).
* Between `hold` entered and left no token is generated. A request in flight keeps the tokens that it has,
  with their versions, and continues after the hold from prompt + partial output with fresh keys and
  values. No cache entry outlives a `load_policy`.
* What a request draws depends on its seed and on its own tokens, never on its neighbours (beyond
  floating-point noise of batched kernels).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

FinishReason = Literal["stop", "length"]
MASK64 = (1 << 64) - 1


@dataclass(frozen=True)
class Sampling:
    """How to draw. `temperature` 0 is greedy; `seed` is any unsigned 64-bit number."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_new_tokens: int = 16
    seed: int = 0


class StopRule(Protocol):
    """Says when a generation is over. One object per request; it sees the output tokens in order."""

    @property
    def stop_ids(self) -> frozenset[int]:
        """Tokens that end the generation; they stay in the output."""
        ...

    @property
    def needs_text(self) -> bool:
        """False: only `stop_ids` count, so an engine may apply them itself."""
        ...

    def push(self, token: int) -> bool:
        """Take the next output token; True when it is the last."""
        ...


@dataclass
class Generation:
    """A request's output so far: three lists of one length, and why it ended (None while it has not)."""

    output_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    finish_reason: FinishReason | None = None

    def add(self, token: int, logprob: float, version: int) -> None:
        """Append one token."""
        self.output_ids.append(token)
        self.logprobs.append(logprob)
        self.versions.append(version)


class Engine(Protocol):
    """One model on one machine. Only one policy is resident at a time."""

    @property
    def name(self) -> str:
        """vllm | torch | stub, as reported in results."""
        ...

    @property
    def verifiable(self) -> bool:
        """False where `score` means nothing (the stub), so that the probe cannot be checked."""
        ...

    @property
    def alive(self) -> bool:
        """False once the engine cannot serve any more and must be stopped and started again."""
        ...

    @property
    def max_model_len(self) -> int:
        """Most tokens of prompt plus output. Valid after `start`."""
        ...

    async def start(self, folder: Path, version: int) -> None:
        """Load the model folder. Raises EngineUnavailable."""
        ...

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling, stops: StopRule) -> Generation:
        """Generate one turn. Raises EngineDied, BadRequest. Cancelling takes the request out of the batch."""
        ...

    def hold(self) -> AbstractAsyncContextManager[None]:
        """Stop all generation between two decode steps; it continues when the context is left."""
        ...

    async def load_policy(self, folder: Path, version: int) -> None:
        """Replace the weights (same architecture). Only inside `hold`. Raises EngineDied, PolicyRefused."""
        ...

    async def score(self, ids: Sequence[int]) -> list[float]:
        """log_softmax(logits) of each of `ids[1:]` given what stands before it; allowed inside `hold`."""
        ...

    async def stop(self) -> None:
        """End every request with EngineDied and let go of memory and processes. Idempotent."""
        ...


def mix(seed: int, position: int) -> int:
    """SplitMix64 of (seed, position): the random bits of a request's output token number `position`.

    Counter-based, so that a request that was interrupted draws what it would have drawn anyway.
    Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
    """
    state = (seed * 0xD1342543DE82EF95 + (position + 1) * 0x9E3779B97F4A7C15) & MASK64
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK64
    return state ^ (state >> 31)


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) from `mix`."""
    return (mix(seed, position) >> 11) * 2.0**-53
