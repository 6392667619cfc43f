"""Attention over a prefix tree, as an attention implementation of transformers.

Each node attends to its ancestors and, causally, to itself. Nothing is padded and no query meets a key that
it may not see, unlike one dense mask over the whole pack (a fifth of a step on a CPU).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

NAME = "sandpiper_tree"


@dataclass(frozen=True)
class Layout:
    """How the tokens of a pack hang together. Nodes lie one after another."""

    lengths: tuple[int, ...]
    ancestors: tuple[tuple[int, ...], ...]
    """Per node the indices of the nodes before it, from the root."""

    @classmethod
    def single(cls, length: int) -> Layout:
        """One plain sequence."""
        return cls((length,), ((),))


def tree_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    layout: Layout | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """[1, H, T, D] queries, [1, H_kv, T, D] keys and values -> [1, T, H, D].

    Without `layout` the T tokens are one sequence. Masks and dropout do not exist here: packs have no
    padding, and a policy is trained as it samples.
    """
    layout = layout or Layout.single(query.shape[2])
    repeat = query.shape[1] // key.shape[1]
    if repeat > 1:
        key, value = key.repeat_interleave(repeat, dim=1), value.repeat_interleave(repeat, dim=1)
    # split, not slices: its backward is one concatenation instead of a zero-filled copy per slice
    queries, keys, values = (x.split(layout.lengths, dim=2) for x in (query, key, value))
    out = [
        _attend(queries[n], [keys[i] for i in (*seen, n)], [values[i] for i in (*seen, n)], scaling)
        for n, seen in enumerate(layout.ancestors)
    ]
    return torch.cat(out, dim=2).transpose(1, 2).contiguous(), None


def _attend(query: Tensor, keys: list[Tensor], values: list[Tensor], scaling: float | None) -> Tensor:
    if len(keys) == 1:
        return scaled_dot_product_attention(query, keys[0], values[0], is_causal=True, scale=scaling)
    key, value = torch.cat(keys, dim=2), torch.cat(values, dim=2)
    own, all_ = query.shape[2], key.shape[2]
    mask = torch.ones(own, all_, dtype=torch.bool, device=query.device).tril(all_ - own)
    return scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling)


AttentionInterface.register(NAME, tree_attention)
