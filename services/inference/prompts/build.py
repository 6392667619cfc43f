"""Builds a turn's prompt: the exact tokens of the turns before, then the encoding of what is new.

Invariants
* The prompt of turn n + 1 starts with prompt and output of turn n, token by token; nothing generated is
  ever decoded and encoded again.
* `turn_starts`/`turn_ends` cut every earlier output out of the prompt, so that a learner can tell its own
  tokens from those it was shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sandpiper.v1.inference_pb2 import TurnTokens
from services.inference.failures import BadRequest
from services.inference.prompts.tokenizer import MARKER, Message, Tokenizer, after_reply


@dataclass(frozen=True)
class Prompt:
    """Token ids from the start of the episode, and where earlier outputs lie in them."""

    ids: list[int]
    turn_starts: list[int] = field(default_factory=list)
    turn_ends: list[int] = field(default_factory=list)


def build_prompt(
    tokenizer: Tokenizer, prior: TurnTokens | None, messages: Sequence[Message], prefix: str
) -> Prompt:
    """The prompt of a turn; `prior` is None at turn 0. Raises BadRequest."""
    if prior is None:
        if not messages:
            raise BadRequest("the first turn needs messages")
        return Prompt(tokenizer.encode(tokenizer.render(messages) + prefix))
    start = len(prior.prompt_ids)
    before = [*prior.prompt_ids, *prior.output_ids]
    return Prompt(
        ids=before + _after(tokenizer, prior.output_ids, messages, prefix),
        turn_starts=[*prior.turn_starts, start],
        turn_ends=[*prior.turn_ends, len(before)],
    )


def room(prompt_tokens: int, wanted: int, context_tokens: int, engine_limit: int) -> int:
    """New tokens that fit; 0 when the context is full. `context_tokens` 0 means no limit but the engine's."""
    limit = min(context_tokens or engine_limit, engine_limit)
    return max(0, min(wanted, limit - prompt_tokens))


def _after(
    tokenizer: Tokenizer, output: Sequence[int], messages: Sequence[Message], prefix: str
) -> list[int]:
    """Tokens between the end of a reply and the start of the next, end of turn included.

    The template is rendered around a marker in the reply's place; what follows the marker is the suffix.
    """
    rendered = tokenizer.render(after_reply(messages))
    _, found, suffix = rendered.rpartition(MARKER)
    if not found:
        raise BadRequest("the chat template drops or changes the replies of the assistant")
    ids = tokenizer.encode(suffix + prefix)
    if output and ids and output[-1] == ids[0] and ids[0] in tokenizer.stop_ids:
        return ids[1:]
    return ids
