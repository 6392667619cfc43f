"""Keys and values of a running batch: one row per request, written in place.

Layout per layer: [rows, length, kv heads, head size]. A row's token n lies at [row, n]; rows 0..batch-1 are
in use. Appending needs no copy of what is there, which a growing cache would need at every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import AttentionInterface
from transformers.cache_utils import Cache

ATTENTION = "sandpiper_slots"
LENGTH_STEP = 128


class SlotCache(Cache):  # type: ignore[misc]
    """The cache object that the model's layers call. Call `prefill` or `decode` before each forward."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__(layers=[])
        self._dtype = dtype
        self._device = device
        self._keys: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []
        self._rows = 0
        self._length = 0
        self._prefill_row: int | None = None
        self._prefill_start = 0
        self._positions = torch.empty(0, dtype=torch.long)
        self._row_ids = torch.empty(0, dtype=torch.long)
        self._longest = 0

    def reserve(self, rows: int, length: int, used: int) -> None:
        """Make room for so many rows of so many tokens; rows 0..used-1 keep what is stored."""
        if rows <= self._rows and length <= self._length:
            return
        length = -(-length // LENGTH_STEP) * LENGTH_STEP
        kept = (slice(used), slice(min(length, self._length)))
        for tensors in (self._keys, self._values):
            for layer, old in enumerate(tensors):
                tensors[layer] = old.new_zeros((rows, length, *old.shape[2:]))
                tensors[layer][kept] = old[kept]
        self._rows, self._length = rows, length

    def prefill(self, row: int, start: int) -> None:
        """The next forward is the prompt of one request from token `start` on; those before are stored."""
        self._prefill_row, self._prefill_start = row, start

    def decode(self, positions: torch.Tensor, longest: int) -> None:
        """The next forward is one token per row 0..n-1; `positions` [n] is where each is written."""
        self._prefill_row = None
        self._positions = positions
        self._row_ids = torch.arange(len(positions), device=positions.device)
        self._longest = longest

    def copy_row(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` tokens of a row."""
        for tensor in (*self._keys, *self._values):
            tensor[target, :length] = tensor[source, :length]

    def read_row(self, row: int, length: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Copies of the first `length` keys and values of a row, per layer."""
        keys = [tensor[row, :length].clone() for tensor in self._keys]
        return keys, [tensor[row, :length].clone() for tensor in self._values]

    def write_row(
        self, row: int, length: int, keys: Sequence[torch.Tensor], values: Sequence[torch.Tensor]
    ) -> None:
        """Put the first `length` of such copies into a row."""
        for mine, copies in ((self._keys, keys), (self._values, values)):
            for tensor, copy in zip(mine, copies, strict=True):
                tensor[row, :length] = copy[:length]

    def clear(self) -> None:
        """Drop everything, memory included."""
        self._keys, self._values = [], []
        self._rows = self._length = 0

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store the layer's new keys and values [n, kv heads, tokens, size]; return what to attend to."""
        if layer_idx == len(self._keys):
            shape = (self._rows, self._length, key_states.shape[1], key_states.shape[3])
            self._keys.append(torch.zeros(shape, dtype=self._dtype, device=self._device))
            self._values.append(torch.zeros(shape, dtype=self._dtype, device=self._device))
        keys, values = self._keys[layer_idx], self._values[layer_idx]
        if self._prefill_row is not None:
            start, end = self._prefill_start, self._prefill_start + key_states.shape[2]
            keys[self._prefill_row, start:end] = key_states[0].transpose(0, 1)
            values[self._prefill_row, start:end] = value_states[0].transpose(0, 1)
            if start == 0:
                return key_states, value_states
            row = (slice(self._prefill_row, self._prefill_row + 1), slice(end))
            return keys[row].transpose(1, 2), values[row].transpose(1, 2)
        keys[self._row_ids, self._positions] = key_states[:, :, 0]
        values[self._row_ids, self._positions] = value_states[:, :, 0]
        used = (slice(len(self._row_ids)), slice(self._longest))
        return keys[used].transpose(1, 2), values[used].transpose(1, 2)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Unused: positions are always given."""
        return 0


def attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Causal attention without a mask (prefill, scoring); with one [1, 1, n, length], the last n tokens of a
    prompt; with one [rows, 1, 1, length], one token per row.

    In decoding, the query heads that share a key head become its queries, so that keys are never repeated.
    """
    functional = torch.nn.functional.scaled_dot_product_attention
    tokens = query.shape[2]
    if attention_mask is None or tokens > 1:
        causal = attention_mask is None and tokens > 1
        groups = query.shape[1] != key.shape[1]
        out = functional(
            query, key, value, attn_mask=attention_mask, is_causal=causal, scale=scaling, enable_gqa=groups
        )
        return out.transpose(1, 2).contiguous(), None
    rows, heads, _one, size = query.shape
    grouped = query.reshape(rows, key.shape[1], heads // key.shape[1], size)
    out = functional(grouped, key, value, attn_mask=attention_mask, scale=scaling)
    return out.reshape(rows, 1, heads, out.shape[-1]), None


def register() -> str:
    """Make `attention` known to transformers; returns its name. Such models get no mask of their own."""
    AttentionInterface.register(ATTENTION, attention)
    return ATTENTION
