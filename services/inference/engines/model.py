"""A transformers causal language model for the torch engine: loading, replacing weights, three forwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM

from services.inference.engines.slots import SlotCache, register
from services.inference.failures import PolicyRefused

DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float16": torch.float16}


class Model:
    """Weights plus the keys and values of the batch. Not thread-safe: one thread uses it."""

    def __init__(self, folder: Path, dtype: str, device: str) -> None:
        config = AutoConfig.from_pretrained(folder)
        _refuse_windows(config)
        self.device = torch.device(device)
        self.dtype = DTYPES[dtype]
        self.max_positions = int(config.max_position_embeddings)
        self._net: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=self.dtype, attn_implementation=register(), device_map=None
        )
        self._net.to(self.device).eval()
        if self.device.type == "cpu":
            for module in self._net.modules():
                if isinstance(module, torch.nn.Linear):
                    module.forward = partial(_few_rows, module)
        self.cache = SlotCache(self.dtype, self.device)
        self.bytes_per_token = _kv_bytes(config, self.dtype)

    def load(self, folder: Path) -> None:
        """Copy the folder's weights over the present ones and drop every key and value."""
        parameters = dict(self._net.named_parameters()) | dict(self._net.named_buffers())
        ties = self._net.config.tie_word_embeddings
        tied = set(getattr(self._net, "_tied_weights_keys", None) or ()) if ties else set()
        missing = {name for name, _ in self._net.named_parameters(remove_duplicate=True)} - tied
        with torch.no_grad():
            for name, value in _weights(folder):
                target = parameters.get(name)
                if target is None and name in tied:
                    continue
                if target is None or target.shape != value.shape:
                    raise PolicyRefused("incompatible", f"{name} {tuple(value.shape)} does not fit the model")
                target.copy_(value)
                missing.discard(name)
        if missing:
            raise PolicyRefused("incompatible", f"no weights for {sorted(missing)[:5]}")
        self.cache.clear()

    def prefill(self, ids: Sequence[int], row: int, start: int = 0) -> torch.Tensor:
        """Read a prompt into `row`, which holds its first `start` tokens already; logits [vocabulary] after
        its last token."""
        self.cache.prefill(row, start)
        batch = torch.tensor([list(ids[start:])], device=self.device)
        positions = torch.arange(start, len(ids), device=self.device)
        mask = torch.arange(len(ids), device=self.device)[None, :] <= positions[:, None] if start else None
        return self._logits(batch, positions[None, :], None if mask is None else mask[None, None], keep=1)[0]

    def decode(self, tokens: Sequence[int], positions: Sequence[int]) -> torch.Tensor:
        """One more token for each of rows 0..n-1; logits [n, vocabulary]."""
        where = torch.tensor(positions, device=self.device)
        longest = max(positions) + 1
        mask = torch.arange(longest, device=self.device)[None, :] <= where[:, None]
        self.cache.decode(where, longest)
        batch = torch.tensor(tokens, device=self.device)[:, None]
        return self._logits(batch, where[:, None], mask[:, None, None, :], keep=0)

    def score(self, ids: Sequence[int]) -> list[float]:
        """log_softmax(logits) of each of `ids[1:]`."""
        with torch.inference_mode():
            logits = self._net(
                input_ids=torch.tensor([list(ids)], device=self.device), use_cache=False
            ).logits[0]
        logprobs = torch.log_softmax(logits[:-1].float(), dim=-1)
        following = torch.tensor(list(ids[1:]), device=self.device)
        scores: list[float] = logprobs.gather(-1, following[:, None])[:, 0].tolist()
        return scores

    def _logits(
        self, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None, keep: int
    ) -> torch.Tensor:
        with torch.inference_mode():
            output = self._net(
                input_ids=ids,
                position_ids=positions,
                attention_mask=mask,
                past_key_values=self.cache,
                use_cache=True,
                logits_to_keep=keep,
            )
        return output.logits[:, -1]


FEW = range(2, 49)
"""Rows for which a CPU multiplies weights by inputs two to three times as fast as inputs by weights."""


def _few_rows(module: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """`module(x)`, in the order of factors that suits the number of rows."""
    rows = x.reshape(-1, x.shape[-1])
    if len(rows) not in FEW:
        return torch.nn.functional.linear(x, module.weight, module.bias)
    out = (module.weight @ rows.t()).t()
    if module.bias is not None:
        out = out + module.bias
    return out.reshape(*x.shape[:-1], -1)


def _weights(folder: Path) -> Iterator[tuple[str, torch.Tensor]]:
    shards = sorted(folder.glob("*.safetensors"))
    if not shards:
        raise PolicyRefused("incompatible", "the policy has no .safetensors file")
    for shard in shards:
        yield from load_file(shard).items()


def _kv_bytes(config: Any, dtype: torch.dtype) -> int:
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return int(2 * config.num_hidden_layers * heads * size * dtype.itemsize)


def _refuse_windows(config: Any) -> None:
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    if kinds != {"full_attention"} or (window and window < config.max_position_embeddings):
        raise PolicyRefused("incompatible", f"the torch engine has full attention only, not {sorted(kinds)}")
