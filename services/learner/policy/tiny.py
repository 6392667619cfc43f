"""The `tiny` model: a random-weight Llama over bytes, the same for the same seed. For tests and CI.

Its first hidden channel carries a constant, and the output head turns that into a prior over bytes: digits
and the end of a line or turn are likely, other printable characters less so, the rest rare. Without it, one
byte of 260 would be right by luck and a run of a few steps would hardly ever see a reward.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from services.learner.policy.folders import build_once
from services.learner.policy.tokenizers import BYTE_SPECIALS, byte_alphabet, save_byte_tokenizer

if TYPE_CHECKING:
    import torch

CONTEXT = 2048
LAYOUT = 2
"""Counts up when the model below changes, so that an old cached folder is not mistaken for it."""


def tiny_folder(cache: Path, seed: int) -> Path:
    """The tiny model of `seed` as a Hugging Face folder under `cache`."""
    return build_once(cache / f"tiny-v{LAYOUT}-{seed}", lambda folder: build_tiny(folder, seed))


def tiny_config(vocabulary: int) -> Any:
    """Two layers of width 128, about 0.4 million parameters; heads of 32 because vLLM on CPU has no
    smaller."""
    from transformers import LlamaConfig  # noqa: PLC0415

    return LlamaConfig(
        architectures=["LlamaForCausalLM"],
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        tie_word_embeddings=False,
        bos_token_id=1,
        eos_token_id=3,
        pad_token_id=None,
        dtype="bfloat16",
    )


def build_tiny(folder: Path, seed: int) -> None:
    """Write config, byte tokenizer and seeded random weights into `folder`."""
    import torch  # noqa: PLC0415
    from safetensors.torch import save_file  # noqa: PLC0415
    from transformers import LlamaForCausalLM  # noqa: PLC0415

    config = tiny_config(save_byte_tokenizer(folder, CONTEXT))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
        torch.nn.init.normal_(model.model.embed_tokens.weight, std=0.5)
    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] = 1.0
        model.lm_head.weight[:, 0] = byte_prior() / 2.0  # the final norm leaves about 2 in that channel
    weights = {name: value.to(torch.bfloat16).contiguous() for name, value in model.state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config.save_pretrained(folder)


def byte_prior() -> torch.Tensor:
    """Wanted logit of each token id, shape [260]."""
    import torch  # noqa: PLC0415

    names = [*BYTE_SPECIALS, *byte_alphabet()]
    byte_of = {name: byte for byte, name in enumerate(byte_alphabet())}
    return torch.tensor([_logit(name, byte_of.get(name)) for name in names])


def _logit(name: str, byte: int | None) -> float:
    if byte is None:
        return 2.0 if name == "<|im_end|>" else -4.0
    character = chr(byte)
    if character == "\n" or character in "0123456789":
        return 3.0
    if character == " " or "a" <= character <= "z":
        return 1.0
    return 0.0 if 32 <= byte < 127 else -4.0
