"""Draws one token per row from a batch of logits, each row by its own settings and random number."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from services.inference.engines.base import Sampling


def draw(
    logits: torch.Tensor, samplings: Sequence[Sampling], uniforms: Sequence[float]
) -> tuple[list[int], list[float]]:
    """Token and log-probability per row of `logits` [rows, vocabulary].

    Random rows invert the cumulative distribution at `uniforms[row]` in [0, 1): one number per token, so a
    draw does not depend on the vocabulary's size or on other rows.
    """
    logprobs = _distribution(logits.float(), samplings)
    greedy = torch.tensor([s.temperature == 0 for s in samplings], device=logits.device)
    tokens = logprobs.argmax(dim=-1)
    if not bool(greedy.all()):
        tokens = torch.where(greedy, tokens, _invert(logprobs.exp(), uniforms))
    chosen = logprobs.gather(-1, tokens[:, None])[:, 0]
    return tokens.tolist(), chosen.tolist()


def _distribution(logits: torch.Tensor, samplings: Sequence[Sampling]) -> torch.Tensor:
    scale = torch.tensor(
        [1.0 if s.temperature == 0 else s.temperature for s in samplings], device=logits.device
    )
    logprobs = torch.log_softmax(logits / scale[:, None], dim=-1)
    cut = [row for row, s in enumerate(samplings) if s.top_p < 1 and s.temperature > 0]
    if cut:
        nucleus = torch.tensor([samplings[row].top_p for row in cut], device=logits.device)
        logprobs[cut] = _nucleus(logprobs[cut], nucleus)
    return logprobs


def _nucleus(logprobs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Keep the fewest most likely tokens whose mass reaches `top_p` [rows]; renormalise, the rest -inf."""
    ordered, order = logprobs.sort(dim=-1, descending=True)
    before = ordered.exp().cumsum(dim=-1) - ordered.exp()
    ordered = ordered.masked_fill(before >= top_p[:, None], -torch.inf)
    ordered = torch.log_softmax(ordered, dim=-1)
    return torch.full_like(logprobs, -torch.inf).scatter(-1, order, ordered)


def _invert(probabilities: torch.Tensor, uniforms: Sequence[float]) -> torch.Tensor:
    cumulative = probabilities.cumsum(dim=-1, dtype=torch.float64)
    points = torch.tensor(uniforms, dtype=torch.float64, device=cumulative.device) * cumulative[:, -1]
    # right=True never lands on a token of probability zero; the clamp guards the last rounding error.
    found = torch.searchsorted(cumulative, points[:, None], right=True)[:, 0]
    last = (cumulative < cumulative[:, -1:]).sum(dim=-1)
    return torch.minimum(found, last)
