"""Shared prefixes and micro-batches: fewer tokens, the same numbers."""

from __future__ import annotations

import random
from collections.abc import Sequence

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from services.learner.training.batches import Batch, collate, members_of
from services.learner.training.forward import costs_of, token_logprobs
from services.learner.training.packing import Costs, Row, micro_batches, rows_of, shared_prefix
from services.learner.training.sequences import TrainSequence
from tests.unit.learner.learner_kit import random_group, sequence, small_model

SHARE = Costs(linear=577.0)
groups = st.builds(
    lambda seed, size, prompt, output: list(
        random_group(random.Random(seed), "g", size, prompt, output).sequences
    ),
    st.integers(0, 10_000),
    st.integers(1, 8),
    st.integers(1, 60),
    st.integers(1, 40),
)


def batch_of(rows: Sequence[Row]) -> Batch:
    return collate(rows, {s.episode_id: 1.0 for s in members_of(rows)})


def naive_logprobs(model: torch.nn.Module, one: TrainSequence, temperature: float) -> torch.Tensor:
    """One sequence, full logits, no tricks."""
    logits = model(input_ids=torch.tensor(one.ids)[None]).logits[0].float() / temperature
    logprobs = torch.log_softmax(logits, -1)
    return torch.stack([logprobs[p - 1, one.ids[p]] for p in one.targets.tolist()])


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_packed_logprobs_and_gradients_are_those_of_one_row_each(tied: bool, temperature: float) -> None:
    model = small_model(tied=tied).eval()
    rng = random.Random(3)
    packs = [list(random_group(rng, f"g{n}", 5, 30, 20).sequences) for n in range(3)]
    rows = [row for pack in packs for row in rows_of(pack, 512, SHARE)]
    assert any(row.prefix for row in rows)
    batch = batch_of(rows)
    found = token_logprobs(model, batch, temperature)
    expected = torch.cat([naive_logprobs(model, s, temperature) for s in members_of(rows)])
    assert torch.allclose(found, expected, atol=2e-5)
    names, parameters = zip(*model.named_parameters(), strict=True)
    upstream = torch.randn(len(found), generator=torch.Generator().manual_seed(1))
    got = torch.autograd.grad(found, parameters, upstream, retain_graph=False)
    want = torch.autograd.grad(expected, parameters, upstream)
    for name, a, b in zip(names, got, want, strict=True):
        assert torch.allclose(a, b, atol=2e-4, rtol=1e-3), name


def test_a_row_of_one_needs_no_mask() -> None:
    rows = [Row(0, (sequence("a", [1, 2, 3], [4, 5]),)), Row(0, (sequence("b", [1, 2], [4]),))]
    assert batch_of(rows).mask is None


def test_multi_turn_targets_between_observations() -> None:
    """Only the policy's tokens are predicted, also where an observation lies between two outputs."""
    model = small_model().eval()
    one = sequence("a", [1, 2, 3], [4, 5, 6, 7, 8, 9])
    keep = torch.tensor([0, 1, 4, 5]).numpy()
    cut = TrainSequence("a", one.ids, one.targets[keep], one.behaviour[keep], one.versions[keep])
    other = sequence("b", [1, 2, 3], [9, 9])
    rows = rows_of([cut, other], 100, SHARE)
    found = dict(
        zip(
            [s.episode_id for s in members_of(rows)],
            token_logprobs(model, batch_of(rows), 1.0).split(batch_of(rows).lengths),
            strict=True,
        )
    )
    assert torch.allclose(found["a"], naive_logprobs(model, one, 1.0)[keep], atol=1e-5)


@given(groups, st.integers(16, 400))
@settings(max_examples=60, deadline=None)
def test_rows_hold_every_sequence_once_within_the_limit(group: list[TrainSequence], limit: int) -> None:
    rows = rows_of(group, limit, SHARE)
    assert sorted(s.episode_id for s in members_of(rows)) == sorted(s.episode_id for s in group)
    for row in rows:
        assert row.length <= limit or len(row.members) == 1
        assert all((m.ids[: row.prefix] == row.members[0].ids[: row.prefix]).all() for m in row.members)
        assert all(int(m.targets[0]) >= row.prefix for m in row.members)
    assert sum(row.length for row in rows) <= sum(len(s.ids) for s in group)


@given(st.lists(groups, min_size=1, max_size=4), st.integers(16, 400))
@settings(max_examples=40, deadline=None)
def test_micro_batches_hold_every_row_once_within_the_limit(
    packs: list[list[TrainSequence]], limit: int
) -> None:
    rows = [row for pack in packs for row in rows_of(pack, limit, SHARE)]
    batches = micro_batches(rows, limit)
    assert sum(len(batch) for batch in batches) == len(rows)
    for batch in batches:
        assert len(batch) * max(row.length for row in batch) <= limit or len(batch) == 1


def test_shared_prefix_stops_before_the_first_target() -> None:
    a, b = sequence("a", [1, 2, 3], [7, 8]), sequence("b", [1, 2, 3], [7, 9])
    assert shared_prefix([a, b]) == 3  # and not 4: the 7 of each is trained


def test_long_members_are_not_packed_where_attention_costs_more_than_the_prompt() -> None:
    members = [sequence(str(n), [1], [2] * 3000) for n in range(2)]
    assert [len(row.members) for row in rows_of(members, 100_000, SHARE)] == [1, 1]


def test_models_with_windows_do_not_share() -> None:
    model = small_model()
    assert costs_of(model).share
    model.config.layer_types = ["full_attention", "sliding_attention"]
    assert not costs_of(model).share
