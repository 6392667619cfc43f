"""The optimizer step: it learns, repeats itself, refuses nonsense, and resumes bit for bit."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from sandpiper.runs import RunDocument
from services.learner.training.batches import collate
from services.learner.training.forward import token_logprobs
from services.learner.training.loss import LossSettings, policy_loss
from services.learner.training.packing import build
from services.learner.training.sequences import TrainSequence
from services.learner.training.trainer import StepCancelled, StepRefused, TakenGroup, Trainer
from services.learner.training.update import judge, plan
from services.learner.workshop import load_state, save_state
from tests.unit.learner.learner_kit import (
    CPU,
    document,
    never,
    random_group,
    sequence,
    small_model,
    taken,
    trainer,
)


def groups_of(seed: int, count: int = 3) -> list[TakenGroup]:
    rng = random.Random(seed)
    return [random_group(rng, f"s{seed}g{n}") for n in range(count)]


def logprobs(made: Trainer, one: TrainSequence) -> torch.Tensor:
    with torch.no_grad():
        return token_logprobs(made.model, collate(build([one]), {one.episode_id: 1.0}), 1.0)


def same(a: Trainer, b: Trainer) -> bool:
    left, right = a.tensors(), b.tensors()
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_a_rewarded_token_becomes_likelier() -> None:
    made = trainer(document(learning_rate=3e-3))
    prompt = [7, 8, 9]

    def chance() -> float:
        with torch.no_grad():
            return float(made.model(torch.tensor([prompt])).logits[0, -1].softmax(-1)[42])

    def sampled(step: int) -> TakenGroup:
        with torch.no_grad():
            lp = made.model(torch.tensor([prompt])).logits[0, -1].log_softmax(-1)
        draws = torch.multinomial(lp.exp(), 15, generator=torch.Generator().manual_seed(step)).tolist()
        members = []
        for number, token in enumerate([42, *draws]):
            one = sequence(f"{step}-{number}", prompt, [token], reward=float(token == 42))
            members.append(replace(one, behaviour=lp[[token]].numpy()))
        return taken(*members)

    before = chance()
    for step in range(6):
        made.step([sampled(step)], step, never)
    assert chance() > 5 * before


def test_an_interrupted_training_is_bit_for_bit_an_uninterrupted_one(tmp_path: Path) -> None:
    straight = trainer()
    for version in range(4):
        straight.step(groups_of(version), version, never)

    first = trainer()
    for version in range(2):
        first.step(groups_of(version), version, never)
    save_state(first, tmp_path / "state")
    second = trainer(seed=99)  # other weights: the checkpoint must replace all of them
    second.restore(load_state(tmp_path / "state"))
    for version in range(2, 4):
        second.step(groups_of(version), version, never)
    assert same(straight, second)


def test_a_step_repeats_itself() -> None:
    one, two = trainer(), trainer()
    assert one.step(groups_of(1), 0, never)["loss"] == two.step(groups_of(1), 0, never)["loss"]
    assert same(one, two)


def test_the_gradient_is_that_of_a_naive_loss_over_all_tokens() -> None:
    run = document(learning_rate=1e-3, grad_clip=1e6)
    groups = groups_of(5)
    packed, naive = trainer(run), small_model()
    packed.optimizer.step = lambda: None  # only the gradient is of interest
    packed.step(groups, 0, never)
    judged = [judge(g.sequences, set(g.fresh), run.algorithm) for g in groups]
    flat = [s for j in judged if j for s in j.counted]
    total = sum(len(s.targets) for s in flat)
    for s in flat:
        lp = naive(torch.tensor(s.ids)[None]).logits[0].log_softmax(-1)
        current = lp[s.targets - 1, s.ids[s.targets]]
        ones = torch.ones_like(current)
        loss, _ = policy_loss(
            current,
            current.detach(),
            torch.tensor(s.behaviour),
            ones * s.advantage,
            ones / total,
            LossSettings(),
        )
        loss.backward()
    for (name, a), b in zip(packed.model.named_parameters(), naive.parameters(), strict=True):
        assert torch.allclose(a.grad, b.grad, atol=1e-4, rtol=1e-3), name


@pytest.mark.parametrize("micro_tokens", [64, 128, 4096])
def test_micro_batches_change_nothing_but_rounding(micro_tokens: int) -> None:
    whole, parts = (
        trainer(document(grad_clip=1e6)),
        trainer(document(micro_tokens=micro_tokens, grad_clip=1e6)),
    )
    a, b = (each.step(groups_of(2, 9), 0, never) for each in (whole, parts))
    assert a["loss"] == pytest.approx(b["loss"], rel=1e-4)
    assert a["grad_norm"] == pytest.approx(b["grad_norm"], rel=1e-4)
    assert (b["forward_passes"] > 1) is (micro_tokens < 4096)


def equal_rewards(reward: float = 0.3) -> TakenGroup:
    return taken(*(sequence(f"z{n}", [1, 2], [3, 4 + n], reward) for n in range(3)))


def test_groups_without_variance_contribute_nothing() -> None:
    with_them, without = trainer(), trainer()
    a = with_them.step([*groups_of(1), equal_rewards()], 0, never)
    b = without.step(groups_of(1), 0, never)
    assert (a["loss"], a["grad_norm"]) == (b["loss"], b["grad_norm"])
    assert same(with_them, without)


def test_unfiltered_groups_without_variance_count_in_the_denominator_only() -> None:
    run = document(filter_zero_variance=False, grad_clip=1e6)
    a = trainer(run).step([*groups_of(1), equal_rewards()], 0, never)
    b = trainer(run).step(groups_of(1), 0, never)
    tokens = sum(len(s.targets) for g in groups_of(1) for s in g.sequences)
    assert a["grad_norm"] == pytest.approx(b["grad_norm"] * tokens / (tokens + 6), rel=1e-4)


def test_a_step_without_any_signal_leaves_the_weights_alone() -> None:
    made, untouched = trainer(), trainer()
    report = made.step([equal_rewards()], 0, never)
    assert report["updates"] == 0
    assert same(made, untouched)


def test_stale_episodes_are_compared_with_but_not_trained() -> None:
    group = groups_of(1, 1)[0]
    fresh = frozenset(sorted(group.fresh)[1:])
    run = document()
    judged = judge(group.sequences, set(fresh), run.algorithm)
    whole = judge(group.sequences, set(group.fresh), run.algorithm)
    assert judged is not None
    assert whole is not None
    assert {s.episode_id: s.advantage for s in judged.counted} == {
        s.episode_id: s.advantage for s in whole.counted if s.episode_id in fresh
    }
    report = trainer().step([TakenGroup(group.sequences, fresh)], 0, never)
    assert report["trajectories"] == len(fresh)


def test_several_updates_use_the_policy_at_the_start_as_old() -> None:
    run = document(minibatches=3, inner_epochs=2, learning_rate=3e-2)
    groups = [on_policy(trainer(run), group) for group in groups_of(4)]
    report = trainer(run).step(groups, 0, never)
    assert report["updates"] == 6
    assert report["clip_fraction"] > 0  # later updates moved away from the start
    assert report["engine_log_ratio_abs"] < 1e-4  # measured at the start, where the engine agreed


def on_policy(made: Trainer, group: TakenGroup) -> TakenGroup:
    """The group with the behaviour log-probabilities that `made` would report."""
    members = [replace(s, behaviour=logprobs(made, s).numpy()) for s in group.sequences]
    return TakenGroup(members, group.fresh)


def test_one_update_never_clips_and_reports_the_engine_mismatch() -> None:
    made = trainer()
    groups = [on_policy(made, group) for group in groups_of(4)]
    report = made.step(groups, 0, never)
    assert report["clip_fraction"] == 0
    assert report["engine_log_ratio_abs"] < 1e-4
    assert report["tis_mean"] == pytest.approx(1.0, abs=1e-4)
    assert report["engine_k3"] == pytest.approx(0.0, abs=1e-4)
    assert 0 < report["entropy"] < 20


def test_minibatches_hold_every_sequence_once_per_epoch() -> None:
    run = document(minibatches=4, inner_epochs=3)
    judged = [j for g in groups_of(9) if (j := judge(g.sequences, set(g.fresh), run.algorithm))]
    updates = plan(judged, run.algorithm, True, 4096, "seed")
    seen = [m.episode_id for u in updates for pack in u.packs for m in pack.members]
    expected = [s.episode_id for j in judged for s in j.moving]
    assert len(updates) == 12
    assert sorted(seen) == sorted(expected * 3)
    for update in updates:
        members = [m for pack in update.packs for m in pack.members]
        weights = sum(update.weight_of[m.episode_id] * len(m.targets) for m in members)
        assert weights == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("loss_norm", ["token", "sequence"])
def test_loss_norm_reaches_the_loss(loss_norm: str) -> None:
    report = trainer(document(loss_norm=loss_norm)).step(groups_of(6), 0, never)
    assert math.isfinite(report["loss"])
    other = "token" if loss_norm == "sequence" else "sequence"
    assert report["loss"] != trainer(document(loss_norm=other)).step(groups_of(6), 0, never)["loss"]


def test_warmup_scales_the_learning_rate() -> None:
    made = trainer(document(warmup_steps=4, learning_rate=1e-2))
    rates = [made.step(groups_of(v), v, never)["learning_rate"] for v in range(6)]
    assert rates == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01, 0.01])


def test_gradients_are_clipped() -> None:
    run = document(grad_clip=1e-3, learning_rate=1.0)
    made = trainer(run)
    report = made.step(groups_of(1), 0, never)
    norm = torch.nn.utils.get_total_norm([p.grad for p in made.model.parameters()])
    assert report["grad_norm"] > 1e-3
    assert float(norm) == pytest.approx(1e-3, rel=1e-3)


def test_a_loss_that_is_not_finite_is_refused_and_changes_nothing() -> None:
    made = trainer()
    with torch.no_grad():
        made.model.lm_head.weight[3, 0] = float("inf")
    before = {name: value.clone() for name, value in made.tensors().items()}
    with pytest.raises(StepRefused) as refusal:
        made.step(groups_of(1), 0, never)
    assert refusal.value.reason.startswith("non_finite")
    assert made.dirty
    after = made.tensors()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_gradient_that_is_not_finite_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer()
    made.model.lm_head.weight.register_hook(lambda grad: grad * float("nan"))
    before = made.model.lm_head.weight.detach().clone()
    with pytest.raises(StepRefused, match="non_finite_gradient"):
        made.step(groups_of(1), 0, never)
    assert torch.equal(before, made.model.lm_head.weight)


def test_cancelling_between_micro_batches() -> None:
    made = trainer(document(micro_tokens=64))
    calls = iter([False, True])
    with pytest.raises(StepCancelled):
        made.step(groups_of(1), 0, lambda: next(calls))
    assert made.dirty


def test_report_describes_what_was_trained() -> None:
    stale = replace(sequence("a", [1], [2, 3], 1.0), versions=np.array([4, 5]))
    report = trainer().step([taken(stale, sequence("b", [1], [2], -0.5, version=6))], 6, never)
    assert report["reward_mean"] == pytest.approx(0.25)
    assert report["pass_rate"] == 0.5
    assert report["staleness_mean"] == 1.0
    assert report["staleness_max"] == 2.0
    assert report["tokens"] == 3
    assert report["length_mean"] == 1.5
    assert report["groups"] == 1


def test_bf16_autocast_keeps_fp32_weights() -> None:
    made = Trainer(small_model(), document(dtype="bf16"), replace(CPU, autocast=torch.bfloat16))
    report = made.step(groups_of(1), 0, never)
    assert report["autocast_bf16"] == 1.0
    assert math.isfinite(report["loss"])
    assert {value.dtype for value in made.model.parameters()} == {torch.float32}


def test_run_documents_reach_the_optimizer() -> None:
    run: RunDocument = document(betas=(0.8, 0.9), weight_decay=0.1)
    group = trainer(run).optimizer.param_groups[0]
    assert (group["betas"], group["weight_decay"]) == ((0.8, 0.9), 0.1)
