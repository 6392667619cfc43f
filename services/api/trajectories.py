"""Puts an episode's trajectory together from the tokens of its turns.

Each turn's `TurnTokens` holds the whole prompt up to it, which must extend what came before token by token:
anything else means that a trajectory was damaged, and it is refused rather than repaired.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import DecodeError

from sandpiper.store.db.models import Episode
from sandpiper.store.errors import CorruptObject
from sandpiper.v1.inference_pb2 import TurnTokens
from services.api.schemas.episodes import Span, TrajectoryView


def assemble(episode: Episode, attempt: int, turns: Sequence[tuple[int, bytes]]) -> TrajectoryView:
    """`turns`: number and serialised `TurnTokens`, in order. Raises `CorruptObject`."""
    ids: list[int] = []
    mask: list[int] = []
    logprobs: list[float | None] = []
    versions: list[int | None] = []
    spans: list[Span] = []
    policy_run = ""
    for number, data in turns:
        tokens = _parse(number, data)
        prompt, output = list(tokens.prompt_ids), list(tokens.output_ids)
        if prompt[: len(ids)] != ids:
            raise CorruptObject(f"turn {number} of {episode.id} does not extend the tokens before it")
        shown = len(prompt) - len(ids)
        spans.append(Span(turn=number, start=len(prompt), end=len(prompt) + len(output)))
        ids = prompt + output
        mask += [0] * shown + [1] * len(output)
        logprobs += [*[None] * shown, *tokens.logprobs]
        versions += [*[None] * shown, *tokens.versions]
        policy_run = tokens.policy_run_id or policy_run
    return TrajectoryView(
        episode_id=episode.id,
        run_id=episode.run_id,
        attempt=attempt,
        policy_run_id=policy_run,
        token_ids=ids,
        mask=mask,
        logprobs=logprobs,
        versions=versions,
        turns=spans,
        reward=episode.reward,
        passed=episode.passed,
    )


def _parse(number: int, data: bytes) -> TurnTokens:
    try:
        tokens = TurnTokens.FromString(data)
    except DecodeError as error:
        raise CorruptObject(f"tokens of turn {number} cannot be read: {error}") from None
    outputs = len(tokens.output_ids)
    if len(tokens.logprobs) != outputs or len(tokens.versions) != outputs:
        raise CorruptObject(f"turn {number}: {outputs} tokens, but other numbers of logprobs and versions")
    return tokens
