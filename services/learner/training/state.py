"""Weights, AdamW state and rng as one flat table of tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")
RNG = "rng/torch"


def state_of(model: Any, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Everything that `set_state` needs, by name; views of live memory, not copies."""
    out = {RNG: torch.get_rng_state()}
    for name, parameter in model.named_parameters():
        out[f"weights/{name}"] = parameter.detach()
        for key, value in optimizer.state.get(parameter, {}).items():
            out[f"{key}/{name}"] = value
    return out


def set_state(model: Any, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Take over what `state_of` gave. Raises KeyError when a weight is missing."""
    torch.set_rng_state(tensors[RNG])
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[f"weights/{name}"])
            found = {key: tensors[f"{key}/{name}"] for key in ADAM_STATE if f"{key}/{name}" in tensors}
            if len(found) == len(ADAM_STATE):
                optimizer.state[parameter] = {
                    key: value.clone() if key == "step" else value.to(parameter.device, copy=True)
                    for key, value in found.items()
                }
