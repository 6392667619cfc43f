"""A random two-layer Llama over bytes in a folder, and what tests need around it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from services.inference.engines.torch_engine import TorchEngine, TorchOptions
from services.inference.prompts.stopping import Stops

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CONTEXT = 512


def save_tokenizer(folder: Path, template: str = CHATML) -> PreTrainedTokenizerFast:
    """A byte tokenizer with ChatML specials."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in SPECIALS])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = template
    fast.save_pretrained(folder)
    return fast


def make_tiny(folder: Path, seed: int = 0, tie: bool = True, layers: int = 2, head_size: int = 16) -> Path:
    """Config, weights (random by seed, wide enough to be far from uniform) and tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = save_tokenizer(folder)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=head_size,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=tie,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        initializer_range=0.2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def reference(folder: Path) -> LlamaForCausalLM:
    """The same model as transformers runs it."""
    return LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def full_logprobs(model: LlamaForCausalLM, ids: Sequence[int], temperature: float = 1.0) -> torch.Tensor:
    """log_softmax(logits / temperature) of one forward over `ids`, shape [len(ids) - 1, vocabulary]."""
    with torch.no_grad():
        logits = model(torch.tensor([list(ids)])).logits[0, :-1]
    return torch.log_softmax(logits.float() / temperature, dim=-1)


def recomputed(
    model: LlamaForCausalLM, prompt: Sequence[int], output: Sequence[int], temperature: float = 1.0
) -> list[float]:
    """What a learner gets for each output token."""
    ids = [*prompt, *output]
    rows = full_logprobs(model, ids, temperature)[len(prompt) - 1 :]
    return [float(row[token]) for row, token in zip(rows, output, strict=True)]


def make_engine(**changes: Any) -> TorchEngine:
    """A torch engine in float32 on one thread."""
    options: dict[str, Any] = {
        "dtype": "float32",
        "device": "cpu",
        "threads": 1,
        "max_batch": 8,
        "max_model_len": None,
        "kv_bytes": 1 << 26,
        "prefix_bytes": 1 << 22,
    }
    return TorchEngine(TorchOptions(**(options | changes)))


def never_stop() -> Stops:
    """Only the length ends it."""
    return Stops(frozenset(), [], lambda _: "")


class Counting:
    """A stop rule that never stops, and counts."""

    stop_ids: frozenset[int] = frozenset()
    needs_text = True

    def __init__(self) -> None:
        self.count = 0

    def push(self, token: int) -> bool:
        """Count a token."""
        self.count += 1
        return False


def end_token(folder: Path) -> int:
    """The id in config.json."""
    return int(json.loads((folder / "config.json").read_text())["eos_token_id"])
