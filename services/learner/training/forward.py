"""Log-probabilities of trained tokens only: the output head never sees another position.

SmolLM2 has 49 152 outputs for 576 channels, so logits of prompts and observations would be most of the work.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from services.learner.training.attention import NAME
from services.learner.training.batches import Batch

PLAIN_CAUSAL = {"llama", "smollm3", "qwen2", "qwen3", "mistral", "olmo2"}
"""Families that are known to pass attention arguments on and to need no mask of their own. Others are
computed one sequence at a time, by their own attention."""


def token_logprobs(model: Any, batch: Batch, temperature: float) -> Tensor:
    """[N] log-probability of each target under softmax(logits / temperature), fp32.

    `model` is a transformers causal LM, prepared by `prepare`. Temperature 0 (greedy) reports
    log-probabilities at 1, as engines do.
    """
    tree = {"layout": batch.layout} if shares_prefixes(model) else {}
    hidden = model.base_model(
        input_ids=batch.input_ids, position_ids=batch.position_ids, use_cache=False, **tree
    ).last_hidden_state[0]
    logits = model.get_output_embeddings()(hidden[batch.predictors]).float()
    if temperature not in (0.0, 1.0):
        logits = logits / temperature
    result: Tensor = ChosenLogProb.apply(logits, batch.targets)
    return result


def prepare(model: Any) -> None:
    """Let a model whose attention is plain causal compute prefix trees."""
    if _plain_causal(model.config.get_text_config()):
        model.set_attn_implementation(NAME)


def shares_prefixes(model: Any) -> bool:
    """True for a model that `prepare` has changed."""
    return bool(model.config.get_text_config()._attn_implementation == NAME)


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


def _plain_causal(config: Any) -> bool:
    if config.model_type not in PLAIN_CAUSAL:
        return False
    kinds = getattr(config, "layer_types", None)
    if kinds:
        return all(kind == "full_attention" for kind in kinds)
    return not getattr(config, "sliding_window", None)
