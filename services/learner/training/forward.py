"""Log-probabilities of trained tokens only: the output head never sees another position.

SmolLM2 has 49 152 outputs for 576 channels, so logits of prompts and observations would be most of the work.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from services.learner.training.batches import Batch
from services.learner.training.packing import Costs


def token_logprobs(model: Any, batch: Batch, temperature: float) -> Tensor:
    """[N] log-probability of each target under softmax(logits / temperature), fp32.

    `model` is a transformers causal LM. Temperature 0 (greedy) reports log-probabilities at 1, as engines do.
    """
    hidden = model.base_model(
        input_ids=batch.input_ids,
        position_ids=batch.position_ids,
        attention_mask=batch.mask,
        use_cache=False,
    ).last_hidden_state
    logits = model.get_output_embeddings()(hidden[batch.rows, batch.columns]).float()
    if temperature not in (0.0, 1.0):
        logits = logits / temperature
    result: Tensor = ChosenLogProb.apply(logits, batch.targets)
    return result


class ChosenLogProb(torch.autograd.Function):  # type: ignore[misc]
    """log_softmax(logits)[target] with one [N, V] buffer less in memory per direction than autograd's own.

    Backward overwrites `logits` with its gradient; nothing else may need them.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> Tensor:
        """[N, V] and [N] -> [N]."""
        normaliser = torch.logsumexp(logits, dim=-1)
        ctx.save_for_backward(logits, targets, normaliser)
        return logits.gather(-1, targets[:, None])[:, 0] - normaliser

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """d/dlogits = gradient · (onehot(target) - softmax(logits))."""
        logits, targets, normaliser = ctx.saved_tensors
        out = logits.sub_(normaliser[:, None]).exp_().mul_(-gradient[:, None])
        return out.scatter_add_(-1, targets[:, None], gradient[:, None]), None


def costs_of(model: Any) -> Costs:
    """How dear linear layers are against attention, and whether rows may share prefixes."""
    config = model.config.get_text_config()
    width = config.num_attention_heads * (
        getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    )
    embeddings = {
        id(p) for e in (model.get_input_embeddings(), model.get_output_embeddings()) for p in e.parameters()
    }
    body = sum(p.numel() for p in model.parameters() if id(p) not in embeddings)
    return Costs(body / config.num_hidden_layers / (2 * width), share=_plain_causal(config))


def _plain_causal(config: Any) -> bool:
    kinds = getattr(config, "layer_types", None)
    if kinds is not None:
        return all(kind == "full_attention" for kind in kinds)
    return not getattr(config, "sliding_window", None) and config.model_type in {
        "llama",
        "smollm3",
        "qwen2",
        "qwen3",
    }
