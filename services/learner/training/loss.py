"""Advantages and the policy loss. Pure functions of tensors; formulas and sources in docs/algorithms.md.

Notation, per trained token: π current policy, π_old policy at the start of the update (proximal), π_b
behaviour (what the engine reported); all log-probabilities are natural logs under softmax(logits /
temperature).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

STD_FLOOR = 1e-6
EQUAL = 1e-9
"""Rewards closer than this are the same reward."""
LOG_RATIO_BOUND = 20.0
"""exp() of more than this means nothing; it bounds ratios so that no intermediate value overflows."""


@dataclass(frozen=True)
class LossSettings:
    """The settings of `sandpiper.runs.Algorithm` that the loss reads."""

    clip_low: float = 0.2
    clip_high: float = 0.28
    tis_cap: float = 2.0
    norm: Literal["token", "sequence"] = "token"


@dataclass(frozen=True)
class TokenStats:
    """Sums over tokens, for metrics. Each a scalar tensor without gradient."""

    tokens: Tensor
    clipped: Tensor
    abs_log_ratio: Tensor
    tis: Tensor
    k3: Tensor
    surprise: Tensor


def has_signal(rewards: Tensor) -> bool:
    """False when all rewards of a group ([G]) are equal: it cannot say which episode was better."""
    return bool((rewards.max() - rewards.min()).item() > EQUAL)


def advantages(rewards: Tensor, normalise_std: bool) -> Tensor:
    """[G] rewards of one group -> [G] advantages: R - mean, over (std + 1e-6) when `normalise_std`.

    The standard deviation is the unbiased one; a group of one has mean 0 and deviation 1 (verl core_algos).
    `normalise_std=False` is Dr. GRPO.
    """
    if rewards.numel() == 1:
        return rewards / (1.0 + STD_FLOOR) if normalise_std else rewards.clone()
    centred = rewards - rewards.mean()
    return centred / (rewards.std(unbiased=True) + STD_FLOOR) if normalise_std else centred


def token_weights(lengths: Tensor, norm: Literal["token", "sequence"]) -> Tensor:
    """[S] trained tokens per sequence -> [S] weight of each of its tokens; all weights sum to 1.

    `token`: every token counts the same, 1 / Σ lengths (DAPO). `sequence`: every sequence counts the same,
    1 / (S · length) (original GRPO). Sequences without tokens do not count.
    """
    counted = lengths > 0
    if norm == "token":
        return counted / lengths.sum().clamp(min=1)
    return torch.where(counted, 1.0 / (counted.sum() * lengths.clamp(min=1)), 0.0)


def policy_loss(
    current: Tensor,
    old: Tensor,
    behaviour: Tensor,
    advantage: Tensor,
    weight: Tensor,
    settings: LossSettings,
) -> tuple[Tensor, TokenStats]:
    """Clipped surrogate with token-level truncated importance sampling; all arguments [N], one per token.

    loss = -Σ weight · w · min(r·Â, clip(r, 1-ε_low, 1+ε_high)·Â) with r = π/π_old and w = sg(min(π_old/π_b,
    C)). Only `current` carries gradient. With `old` equal to `current.detach()` r is 1 and the gradient is
    that of -Σ weight · w · Â · log π.
    """
    old, behaviour = old.detach(), behaviour.detach()
    ratio = _exp(current - old)
    clipped = ratio.clamp(1.0 - settings.clip_low, 1.0 + settings.clip_high)
    mismatch = old - behaviour
    rho = _exp(mismatch)
    tis = rho.clamp(max=settings.tis_cap)
    surrogate = torch.minimum(ratio * advantage, clipped * advantage)
    loss = -(weight * tis * surrogate).sum()
    with torch.no_grad():
        stats = TokenStats(
            tokens=torch.tensor(float(current.numel()), device=current.device),
            clipped=(clipped * advantage < ratio * advantage).float().sum(),
            abs_log_ratio=mismatch.abs().sum(),
            tis=tis.sum(),
            k3=(rho - _bounded(mismatch) - 1.0).sum(),
            surprise=-old.sum(),
        )
    return loss, stats


def _bounded(log_ratio: Tensor) -> Tensor:
    return log_ratio.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND)


def _exp(log_ratio: Tensor) -> Tensor:
    return torch.exp(_bounded(log_ratio))
