"""Advantages and loss against hand-computed values, a naive reference, and properties."""

from __future__ import annotations

import math
import statistics

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from services.learner.training.forward import ChosenLogProb
from services.learner.training.loss import (
    LossSettings,
    advantages,
    has_signal,
    policy_loss,
    token_weights,
)

DEFAULT = LossSettings()
rewards = st.lists(st.sampled_from([-0.5, -0.2, -0.1, 0.0, 0.4, 1.0]), min_size=2, max_size=16)
log_probs = st.floats(-12.0, -1e-3)


def t(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_group_normalised_advantages_by_hand() -> None:
    # mean 0.25, unbiased variance ((.75)^2 + 3 * .25^2) / 3 = 0.25, deviation 0.5
    found = advantages(t(1, 0, 0, 0), normalise_std=True)
    assert found.tolist() == pytest.approx([1.5, -0.5, -0.5, -0.5], rel=1e-5)


def test_mean_only_advantages_by_hand() -> None:
    assert advantages(t(1, 0, 0, 0), normalise_std=False).tolist() == pytest.approx(
        [0.75, -0.25, -0.25, -0.25]
    )


def test_a_group_of_one_has_mean_0_and_deviation_1() -> None:
    assert advantages(t(0.5), normalise_std=True).item() == pytest.approx(0.5, rel=1e-5)
    assert advantages(t(0.5), normalise_std=False).item() == 0.5


@given(rewards)
def test_advantages_are_those_of_the_textbook(values: list[float]) -> None:
    found = advantages(t(*values), normalise_std=True).tolist()
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    assert found == pytest.approx([(v - mean) / (deviation + 1e-6) for v in values], abs=1e-9)


@given(rewards, st.floats(-3, 3), st.floats(0.1, 5))
def test_advantages_do_not_depend_on_where_rewards_start(
    values: list[float], shift: float, scale: float
) -> None:
    if has_signal(t(*values)):
        plain = advantages(t(*values), normalise_std=True)
        moved = advantages(t(*[v * scale + shift for v in values]), normalise_std=True)
        assert torch.allclose(plain, moved, atol=1e-3)
        assert abs(plain.sum().item()) < 1e-6


@pytest.mark.parametrize("value", [0.0, 0.1, -0.3, 1.0])
def test_equal_rewards_are_no_signal(value: float) -> None:
    assert not has_signal(t(value, value, value))
    assert has_signal(t(value, value, value + 1e-3))


def test_token_weights_by_hand() -> None:
    lengths = torch.tensor([2, 0, 6])
    assert token_weights(lengths, "token").tolist() == pytest.approx([1 / 8, 0, 1 / 8])
    assert token_weights(lengths, "sequence").tolist() == pytest.approx([1 / 4, 0, 1 / 12])


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20), st.sampled_from(["token", "sequence"]))
def test_token_weights_sum_to_one(lengths: list[int], norm: str) -> None:
    weights = token_weights(torch.tensor(lengths), norm)  # type: ignore[arg-type]
    total = (weights * torch.tensor(lengths)).sum().item()
    assert total == pytest.approx(1.0 if any(lengths) else 0.0, abs=1e-5)


def test_loss_by_hand_inside_the_clip_range() -> None:
    # r = e^0.1 = 1.105170..., rho = e^0.2 = 1.221402..., weight 1, advantage 2
    loss, stats = policy_loss(t(-0.9), t(-1.0), t(-1.2), t(2.0), t(1.0), DEFAULT)
    assert loss.item() == pytest.approx(-math.exp(0.2) * math.exp(0.1) * 2.0)
    assert stats.clipped.item() == 0
    assert stats.tis.item() == pytest.approx(math.exp(0.2))
    assert stats.k3.item() == pytest.approx(math.exp(0.2) - 0.2 - 1.0)
    assert stats.abs_log_ratio.item() == pytest.approx(0.2)
    assert stats.surprise.item() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("log_ratio", "advantage", "factor"),
    [
        (0.5, 1.0, 1.28),  # e^0.5 = 1.65 is cut above, where the advantage is positive: clip-higher
        (0.5, -1.0, math.exp(0.5)),  # but not where it is negative
        (-0.5, -1.0, 0.8),  # e^-0.5 = 0.61 is cut below
        (-0.5, 1.0, math.exp(-0.5)),
    ],
)
def test_the_clip_is_asymmetric_and_pessimistic(log_ratio: float, advantage: float, factor: float) -> None:
    current = t(-1.0 + log_ratio).requires_grad_()
    loss, stats = policy_loss(current, t(-1.0), t(-1.0), t(advantage), t(1.0), DEFAULT)
    loss.backward()
    assert loss.item() == pytest.approx(-factor * advantage)
    is_cut = factor in (1.28, 0.8)
    assert stats.clipped.item() == is_cut
    assert (current.grad.item() == 0) is is_cut  # type: ignore[union-attr]


def test_tis_is_capped_and_carries_no_gradient() -> None:
    old = t(-1.0).requires_grad_()
    behaviour = t(-3.0).requires_grad_()
    current = t(-1.0).requires_grad_()
    loss, stats = policy_loss(current, old, behaviour, t(1.0), t(1.0), DEFAULT)
    loss.backward()
    assert stats.tis.item() == 2.0  # e^2 = 7.4, capped
    assert current.grad.item() == pytest.approx(-2.0)  # type: ignore[union-attr]
    assert old.grad is None
    assert behaviour.grad is None


def test_with_old_equal_to_current_the_gradient_is_reinforce() -> None:
    current = t(-1.0, -2.0).requires_grad_()
    weights, advantage, behaviour = t(0.25, 0.75), t(1.5, -0.5), t(-1.1, -1.9)
    loss, _ = policy_loss(current, current.detach(), behaviour, advantage, weights, DEFAULT)
    loss.backward()
    tis = torch.exp(current.detach() - behaviour).clamp(max=2.0)
    assert torch.allclose(current.grad, -weights * tis * advantage)  # type: ignore[arg-type]


def naive(current: list[float], old: list[float], behaviour: list[float], advantage: list[float]) -> float:
    """The loss of docs/algorithms.md, one token at a time, in plain Python."""
    total = 0.0
    for c, o, b, a in zip(current, old, behaviour, advantage, strict=True):
        ratio = math.exp(c - o)
        clipped = min(max(ratio, 0.8), 1.28)
        total += min(math.exp(o - b), 2.0) * min(ratio * a, clipped * a)
    return -total / len(current)


tokens = st.lists(
    st.tuples(log_probs, log_probs, log_probs, st.floats(-3, 3, allow_subnormal=False)),
    min_size=1,
    max_size=30,
)


@given(tokens)
@settings(max_examples=200)
def test_loss_agrees_with_the_naive_reference(rows: list[tuple[float, float, float, float]]) -> None:
    current, old, behaviour, advantage = (list(column) for column in zip(*rows, strict=True))
    weights = token_weights(torch.tensor([len(rows)]), "token").double().expand(len(rows))
    loss, _ = policy_loss(t(*current), t(*old), t(*behaviour), t(*advantage), weights, DEFAULT)
    assert loss.item() == pytest.approx(naive(current, old, behaviour, advantage), rel=1e-5, abs=1e-7)


@given(tokens, st.integers(1, 29))
def test_loss_is_a_sum_over_micro_batches(rows: list[tuple[float, float, float, float]], cut: int) -> None:
    columns = [t(*column) for column in zip(*rows, strict=True)]
    weights = torch.full((len(rows),), 1.0 / len(rows), dtype=torch.float64)
    whole, _ = policy_loss(*columns, weights, DEFAULT)
    first, _ = policy_loss(*(c[:cut] for c in columns), weights[:cut], DEFAULT)
    second, _ = policy_loss(*(c[cut:] for c in columns), weights[cut:], DEFAULT)
    assert whole.item() == pytest.approx((first + second).item(), abs=1e-9)


@given(tokens)
def test_zero_advantage_means_zero_loss_and_gradient(rows: list[tuple[float, float, float, float]]) -> None:
    current, old, behaviour, _ = (t(*column) for column in zip(*rows, strict=True))
    current.requires_grad_()
    loss, _ = policy_loss(current, old, behaviour, torch.zeros_like(old), torch.ones_like(old), DEFAULT)
    loss.backward()
    assert loss.item() == 0
    assert not current.grad.any()  # type: ignore[union-attr]


def test_extreme_ratios_stay_finite() -> None:
    current = t(0.0, -500.0).requires_grad_()
    loss, stats = policy_loss(current, t(-500.0, 0.0), t(0.0, -500.0), t(1.0, -1.0), t(0.5, 0.5), DEFAULT)
    loss.backward()
    assert math.isfinite(loss.item())
    assert all(math.isfinite(float(value)) for value in vars(stats).values())
    assert torch.isfinite(current.grad).all()  # type: ignore[arg-type]


def test_chosen_log_prob_has_the_gradient_of_log_softmax() -> None:
    torch.manual_seed(0)
    logits = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 6, 3, 3, 1])
    reference = torch.log_softmax(logits, -1).gather(-1, targets[:, None])[:, 0]
    upstream = torch.randn(5, dtype=torch.float64)
    (expected,) = torch.autograd.grad(reference, logits, upstream)
    copy = logits * 1.0  # backward overwrites its input
    found = ChosenLogProb.apply(copy, targets)
    assert torch.allclose(found, reference)
    (gradient,) = torch.autograd.grad(found, logits, upstream)
    assert torch.allclose(gradient, expected)
