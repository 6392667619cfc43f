"""Where a step is computed: device, autocast, threads."""

from __future__ import annotations

from typing import Literal

import torch

from sandpiper.machine import multiplies_bf16
from services.learner.training.trainer import Placement

CPU_MICRO_TOKENS = 2048
"""About 1.6 MB of activations per token for a 135M model in fp32: 3 GB per forward pass."""


def choose(
    device: str, wanted: Literal["bf16", "fp32"], bf16: Literal["auto", "always"], micro_tokens: int | None
) -> Placement:
    """A placement for a run that wants `wanted`.

    `auto` computes in fp32 where the processor multiplies bf16 only by emulation: exact as asked or better,
    and four times faster.
    """
    place = torch.device(_device(device))
    autocast = torch.bfloat16 if wanted == "bf16" and (bf16 == "always" or has_bf16(place)) else None
    bound = micro_tokens or (CPU_MICRO_TOKENS if place.type == "cpu" else 1 << 20)
    return Placement(place, autocast, bound)


def has_bf16(device: torch.device) -> bool:
    """True when matrix products in bf16 are native."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return multiplies_bf16()


def use_threads(count: int | None) -> None:
    """Set the threads of the calling thread's tensor operations (OpenMP keeps the number per thread)."""
    if count is not None:
        torch.set_num_threads(count)


def _device(wanted: str) -> str:
    if wanted != "auto":
        return wanted
    return "cuda" if torch.cuda.is_available() else "cpu"
