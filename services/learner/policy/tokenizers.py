"""Tokenizers built in code: SmolLM2's from GGUF metadata, and bytes for the tiny model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GGUF_CONTROL = 3  # token type of special tokens
BYTE_SPECIALS = ("<|pad|>", "<|bos|>", "<|im_start|>", "<|im_end|>")
BYTE_TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def save_gpt2_tokenizer(meta: dict[str, Any], folder: Path) -> None:
    """Byte-level BPE with single digits (llama.cpp's pre-tokenizer `smollm`)."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415

    names: list[str] = meta["tokenizer.ggml.tokens"]
    kinds: list[int] = meta["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ")) for merge in meta["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={name: i for i, name in enumerate(names)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = {role: names[meta[f"tokenizer.ggml.{role}_token_id"]] for role in ("bos", "eos", "unknown")}
    _save(
        tokenizer,
        folder,
        special=[name for name, kind in zip(names, kinds, strict=True) if kind == GGUF_CONTROL],
        template=meta["tokenizer.chat_template"],
        length=meta["llama.context_length"],
        bos_token=special["bos"],
        eos_token=special["eos"],
        unk_token=special["unknown"],
        pad_token=names[meta["tokenizer.ggml.padding_token_id"]],
    )


def save_byte_tokenizer(folder: Path, length: int) -> int:
    """One token per byte plus four specials, no merges; returns the vocabulary size."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415

    names = [*BYTE_SPECIALS, *byte_alphabet()]
    tokenizer = Tokenizer(models.BPE(vocab={name: i for i, name in enumerate(names)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    _save(
        tokenizer,
        folder,
        special=list(BYTE_SPECIALS),
        template=BYTE_TEMPLATE,
        length=length,
        bos_token="<|bos|>",
        eos_token="<|im_end|>",
        pad_token="<|pad|>",
    )
    return len(names)


def byte_alphabet() -> list[str]:
    """The character that stands for each byte 0..255 in GPT-2's byte-level alphabet."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in plain)
    table = {byte: chr(byte) for byte in plain} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    return [table[byte] for byte in range(256)]


def _save(tokenizer: Any, folder: Path, special: list[str], template: str, length: int, **roles: str) -> None:
    from tokenizers import AddedToken  # noqa: PLC0415
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415

    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=length,
        clean_up_tokenization_spaces=False,
        **roles,
    )
    fast.chat_template = template
    fast.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text()) | {"tokenizer_class": "PreTrainedTokenizerFast"}
    path.write_text(json.dumps(config, indent=2))
