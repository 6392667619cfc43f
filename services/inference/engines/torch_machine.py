"""What torch does best on this machine."""

from __future__ import annotations

import torch

from sandpiper.machine import multiplies_bf16


def pick_device(wanted: str) -> str:
    """The device itself, or for `auto` cuda where there is one."""
    if wanted != "auto":
        return wanted
    return "cuda" if torch.cuda.is_available() else "cpu"


def pick_dtype(wanted: str, device: str) -> str:
    """The dtype itself, or for `auto` bfloat16 where it is native, else float32."""
    if wanted != "auto":
        return wanted
    return "bfloat16" if device != "cpu" or multiplies_bf16() else "float32"
