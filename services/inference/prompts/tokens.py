"""TurnTokens: the record of one turn, as the engine saw and produced it."""

from __future__ import annotations

from sandpiper.v1.inference_pb2 import TurnTokens
from services.inference.engines.base import Generation
from services.inference.failures import BadRequest
from services.inference.prompts.build import Prompt


def turn_tokens(prompt: Prompt, generation: Generation, policy_run_id: str) -> TurnTokens:
    """What is stored for the learner and for the next turn."""
    return TurnTokens(
        prompt_ids=prompt.ids,
        output_ids=generation.output_ids,
        logprobs=generation.logprobs,
        versions=generation.versions,
        policy_run_id=policy_run_id,
        turn_starts=prompt.turn_starts,
        turn_ends=prompt.turn_ends,
    )


def parse_prior(data: bytes) -> TurnTokens:
    """The stored tokens of the turn before. Raises BadRequest when they contradict themselves."""
    prior = TurnTokens.FromString(data)
    if len({len(prior.output_ids), len(prior.logprobs), len(prior.versions)}) != 1:
        raise BadRequest("prior tokens: ids, log-probabilities and versions differ in number")
    if not prior.prompt_ids or len(prior.turn_starts) != len(prior.turn_ends):
        raise BadRequest("prior tokens: no prompt, or turns without an end")
    return prior
