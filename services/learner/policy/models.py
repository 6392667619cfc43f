"""Models in memory: loading a Hugging Face folder, and writing one with a probe."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils.logging import disable_progress_bar

from sandpiper.store.policies import Probe
from services.learner.policy.errors import PolicyUnavailable

disable_progress_bar()

PROBE_TEXT = (
    'def add(a, b):\n    """Return the sum of a and b."""\n    return a + b\n\nassert add(2, 3) == 5\n'
    "The quick brown fox jumps over the lazy dog."
)
PROBE_TOKENS = 48
PROBE_TOLERANCE = 0.25
AUXILIARY_SUFFIXES = (".json", ".txt", ".model", ".jinja", ".tiktoken")
AUXILIARY_BYTES = 64 << 20
NOT_AUXILIARY = {"manifest.json", "sandpiper.json"}


def load_model(folder: Path) -> Any:
    """The causal LM of a folder, fp32. Raises PolicyUnavailable(`invalid`)."""
    try:
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, local_files_only=True, attn_implementation="sdpa"
        )
    except Exception as error:  # transformers raises many types for a folder that it cannot read
        raise PolicyUnavailable("invalid", f"{type(error).__name__}: {error}"[:500]) from error
    if getattr(model.config, "quantization_config", None):
        raise PolicyUnavailable("invalid", "quantised weights cannot be trained")
    return model


def empty_model(folder: Path) -> Any:
    """The same architecture with weights to be filled in by a checkpoint, fp32."""
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="sdpa")


def export(model: Any, template: Path, folder: Path, dtype: torch.dtype) -> Probe:
    """Write weights in `dtype`, and `template`'s configuration and tokenizer, into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value.to("cpu", dtype) for name, value in untied(model).items()}
    model.save_pretrained(folder, state_dict=weights, max_shard_size="1TB")
    for path in template.iterdir():
        if path.suffix in AUXILIARY_SUFFIXES and _is_auxiliary(path):
            shutil.copyfile(path, folder / path.name)
    _say_dtype(folder / "config.json", dtype)
    for path in folder.iterdir():
        path.chmod(0o644)
    return probe(model, weights, template)


def stored_dtype(folder: Path) -> torch.dtype:
    """bf16 for a folder whose weights are all stored so, else fp32, which holds all other types exactly."""
    found = set()
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            found |= {file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118  (not a dict)
    return torch.bfloat16 if found == {"BF16"} else torch.float32


def untied(model: Any) -> dict[str, Tensor]:
    """The state dict with one name per tensor: of tied weights only the first."""
    unique: dict[int, tuple[str, Tensor]] = {}
    for name, value in model.state_dict().items():
        unique.setdefault(value.data_ptr(), (name, value))
    return dict(unique.values())


def probe(model: Any, weights: dict[str, Tensor], tokenizer: Path) -> Probe:
    """What `model` with `weights` says about a fixed text, computed in fp32."""
    ids = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True).encode(
        PROBE_TEXT, add_special_tokens=False
    )[:PROBE_TOKENS]
    device = next(model.parameters()).device
    prompt = torch.tensor([ids], device=device)
    exact = {name: value.to(device, torch.float32) for name, value in weights.items()}
    with torch.no_grad():
        logits = torch.func.functional_call(model, exact, (prompt,), {"use_cache": False}).logits[0, :-1]
    logprobs = torch.log_softmax(logits.float(), -1).gather(-1, prompt[0, 1:, None])[:, 0]
    return Probe(prompt_ids=ids, logprobs=logprobs.tolist(), tolerance=PROBE_TOLERANCE)


def _is_auxiliary(path: Path) -> bool:
    return (
        path.name not in NOT_AUXILIARY
        and not path.name.endswith(".index.json")
        and path.stat().st_size <= AUXILIARY_BYTES
    )


def _say_dtype(path: Path, dtype: torch.dtype) -> None:
    config = json.loads(path.read_text())
    config.pop("torch_dtype", None)
    path.write_text(json.dumps(config | {"dtype": str(dtype).removeprefix("torch.")}, indent=2))
