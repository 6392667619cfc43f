"""Prefix trees: fewer tokens, the same numbers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from transformers import MistralConfig, MistralForCausalLM

from sandpiper.token_ids import common_prefix
from services.learner.training.batches import Batch, collate
from services.learner.training.forward import prepare, shares_prefixes, token_logprobs
from services.learner.training.packing import Pack, build, packs_of
from services.learner.training.sequences import TrainSequence
from tests.unit.learner.learner_kit import random_group, sequence, small_model

names = st.integers(0, 10_000)
alike = st.lists(
    st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=12), st.lists(st.integers(0, 2), max_size=12)),
    min_size=1,
    max_size=12,
)
"""Prompts and outputs over three tokens: many share something, some are equal."""


def batch_of(pack: Pack) -> Batch:
    return collate(pack, {s.episode_id: 1.0 for s in pack.members})


def sequences_of(pairs: Sequence[tuple[list[int], list[int]]]) -> list[TrainSequence]:
    return [sequence(f"e{n}", prompt, output) for n, (prompt, output) in enumerate(pairs)]


def naive_logprobs(model: torch.nn.Module, one: TrainSequence, temperature: float = 1.0) -> torch.Tensor:
    """One sequence, full logits, no tricks."""
    logits = model(input_ids=torch.tensor(one.ids)[None]).logits[0].float() / temperature
    logprobs = torch.log_softmax(logits, -1)
    return torch.stack([logprobs[p - 1, one.ids[p]] for p in one.targets.tolist()])


def three_groups() -> list[TrainSequence]:
    """Prompts that begin alike, outputs that sometimes do, and two equal samples."""
    rng = random.Random(3)
    system = [rng.randrange(260) for _ in range(9)]
    members: list[TrainSequence] = []
    for number in range(3):
        for one in random_group(rng, f"g{number}", 5, 20, 20).sequences:
            ids = np.concatenate([system, one.ids])
            members.append(replace(one, ids=ids, targets=one.targets + len(system)))
    return [*members, replace(members[0], episode_id="twin")]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("limit", [4096, 150])
def test_logprobs_and_gradients_are_those_of_one_sequence_each(
    tied: bool, temperature: float, limit: int
) -> None:
    plain, model = small_model(tied=tied).eval(), small_model(tied=tied).eval()
    prepare(model)
    packs = packs_of(three_groups(), limit, share=True)
    members = [member for pack in packs for member in pack.members]
    assert sum(pack.length for pack in packs) < sum(len(member.ids) for member in members)
    found = torch.cat([token_logprobs(model, batch_of(pack), temperature) for pack in packs])
    expected = torch.cat([naive_logprobs(plain, member, temperature) for member in members])
    assert torch.allclose(found, expected, atol=2e-5)
    upstream = torch.randn(len(found), generator=torch.Generator().manual_seed(1))
    got = torch.autograd.grad(found, list(model.parameters()), upstream)
    want = torch.autograd.grad(expected, list(plain.parameters()), upstream)
    for (name, _), a, b in zip(model.named_parameters(), got, want, strict=True):
        assert torch.allclose(a, b, atol=2e-4, rtol=1e-3), name


def test_targets_between_observations() -> None:
    """Only the policy's tokens are predicted, also where an observation lies between two outputs."""
    model = small_model().eval()
    one = sequence("a", [1, 2, 3], [4, 5, 6, 7, 8, 9])
    keep = np.array([0, 1, 4, 5])
    cut = TrainSequence("a", one.ids, one.targets[keep], one.behaviour[keep], one.versions[keep])
    expected = naive_logprobs(model, one)[torch.tensor(keep)]
    prepare(model)
    batch = batch_of(build([cut, sequence("b", [1, 2, 3], [9, 9])]))
    found = token_logprobs(model, batch, 1.0).split(batch.lengths)
    assert torch.allclose(found[batch.names.index("a")], expected, atol=1e-5)


def test_a_prepared_model_reads_a_plain_sequence_as_before() -> None:
    """The probe of a published policy is computed by the same model."""
    model, ids = small_model().eval(), torch.arange(40)[None]
    with torch.no_grad():
        before = model(ids).logits
        prepare(model)
        assert torch.allclose(model(ids).logits, before, atol=1e-5)


def test_models_with_windows_are_computed_one_sequence_at_a_time() -> None:
    torch.manual_seed(0)
    sizes = {"vocab_size": 260, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
    model = MistralForCausalLM(MistralConfig(**sizes, **heads, sliding_window=8)).eval()
    prepare(model)
    assert not shares_prefixes(model)
    members = list(random_group(random.Random(0), "g", 3, 20, 20).sequences)
    packs = packs_of(members, 4096, shares_prefixes(model))
    assert [len(pack.members) for pack in packs] == [1, 1, 1]
    for pack in packs:
        with torch.no_grad():
            found = token_logprobs(model, batch_of(pack), 1.0)
            assert torch.allclose(found, naive_logprobs(model, pack.members[0]), atol=1e-5)


@given(alike)
@settings(deadline=None)
def test_a_tree_holds_each_sequence_and_each_prefix_once(pairs: list[tuple[list[int], list[int]]]) -> None:
    (pack,) = packs_of(sequences_of(pairs), 10_000, share=True)
    batch = batch_of(pack)
    ids, positions = batch.input_ids[0].numpy(), batch.position_ids[0].numpy()
    for number, member in enumerate(pack.members):
        places = pack.places(number)
        assert ids[places].tolist() == member.ids.tolist()
        assert positions[places].tolist() == list(range(len(member.ids)))
        path = pack.paths[number]
        assert all(pack.nodes[n].ancestors == path[:i] for i, n in enumerate(path))
    prefixes = {tuple(p[:n]) for a, b in pairs for p in [[*a, *b]] for n in range(1, len(p) + 1)}
    assert pack.length == len(prefixes)
    offsets = [node.offset for node in pack.nodes]
    assert offsets == np.cumsum([0, *(node.length for node in pack.nodes)])[:-1].tolist()


@given(alike, st.integers(4, 60))
@settings(deadline=None)
def test_packs_hold_every_sequence_once_within_the_limit(
    pairs: list[tuple[list[int], list[int]]], limit: int
) -> None:
    packs = packs_of(sequences_of(pairs), limit, share=True)
    found = sorted(member.episode_id for pack in packs for member in pack.members)
    assert found == sorted(f"e{n}" for n in range(len(pairs)))
    assert all(pack.length <= limit or len(pack.members) == 1 for pack in packs)


def test_packs_are_of_nearly_equal_size() -> None:
    rng = random.Random(0)
    flat = [s for n in range(20) for s in random_group(rng, f"g{n}", 4, 30, 30).sequences]
    lengths = [pack.length for pack in packs_of(flat, 400, share=True)]
    assert len(lengths) > 3
    assert min(lengths) > 200


def test_equal_sequences_cost_nothing_more() -> None:
    twins = [sequence(f"e{n}", [1, 2, 3], [4, 5, 6]) for n in range(5)]
    (pack,) = packs_of(twins, 100, share=True)
    assert pack.length == 6
    assert len(batch_of(pack).targets) == 15


@given(st.lists(st.integers(0, 1)), st.lists(st.integers(0, 1)))
def test_common_prefix(a: list[int], b: list[int]) -> None:
    expected = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    assert common_prefix(np.array(a, dtype=np.int64), np.array(b, dtype=np.int64)) == expected
