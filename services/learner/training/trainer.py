"""One policy under training: model, optimizer, and the step that moves them. Blocking; lives in a worker
thread.

Invariants:
* weights and optimizer state are fp32 and change only in `optimizer.step`, after every loss and the gradient
  norm were seen to be finite;
* an exception out of `step` may leave some updates of that step applied: the trainer is then `dirty` and
  must be replaced by one restored from the last checkpoint;
* given the same state, groups and settings on the same machine, a step gives the same bits (no dropout, no
  random number that is not derived from the seed and the step).
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sandpiper.runs import Algorithm, RunDocument
from services.learner.training.batches import Batch, collate
from services.learner.training.forward import prepare, shares_prefixes, token_logprobs
from services.learner.training.loss import LossSettings, policy_loss
from services.learner.training.metrics import TokenTotals, describe, finite
from services.learner.training.update import Group, Update, judge, plan

ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")


class StepRefused(Exception):
    """The step would have destroyed the policy. `reason` is machine-readable."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class StepCancelled(Exception):
    """Cancelled between two micro-batches."""


@dataclass(frozen=True)
class Placement:
    """Where and how to compute."""

    device: torch.device
    autocast: torch.dtype | None = None
    """None computes in fp32."""
    micro_tokens: int = 4096
    """Upper bound on top of the run's own."""


@dataclass(frozen=True)
class TakenGroup:
    """A group as the step gets it: all its sequences, and which of them are fresh enough to train."""

    sequences: Group
    fresh: frozenset[str]


class Trainer:
    """See the module's docstring."""

    def __init__(self, model: Any, document: RunDocument, placement: Placement) -> None:
        self.model = model.to(device=placement.device, dtype=torch.float32).eval()
        self._algorithm: Algorithm = document.algorithm
        self._temperature = document.sampling.temperature
        self._seed = document.seed
        self._placement = placement
        self._loss = LossSettings(
            document.algorithm.clip_low,
            document.algorithm.clip_high,
            document.algorithm.tis_cap,
            document.algorithm.loss_norm,
        )
        prepare(self.model)
        self._share = shares_prefixes(self.model)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=document.algorithm.learning_rate,
            betas=document.algorithm.betas,
            weight_decay=document.algorithm.weight_decay,
            fused=True,
        )
        self.dirty = False

    @property
    def computes_in(self) -> torch.dtype:
        """Type of the weights in matrix products, and so of published ones.

        Rounded further, a step of 5e-5 would be lost in most weights (bf16 has 8 bits), and engines would
        sample from a policy that hardly moved.
        """
        return self._placement.autocast or torch.float32

    def step(
        self, groups: Sequence[TakenGroup], version: int, cancelled: Callable[[], bool]
    ) -> dict[str, float]:
        """Train on `groups` at policy version `version`; returns metrics. The new version is `version + 1`.

        Raises StepRefused (nothing more is applied) and StepCancelled.
        """
        began = time.perf_counter()
        self.dirty = True
        judged = [j for g in groups if (j := judge(g.sequences, set(g.fresh), self._algorithm)) is not None]
        limit = min(self._algorithm.micro_tokens, self._placement.micro_tokens)
        updates = plan(judged, self._algorithm, self._share, limit, f"{self._seed}/{version}")
        old = self._old_logprobs(updates, cancelled) if len(updates) > 1 else {}
        self._set_learning_rate(version + 1)
        totals = TokenTotals()
        done = [self._apply(update, old, totals, cancelled) for update in updates]
        self.dirty = False
        fresh = [[s for s in g.sequences if s.episode_id in g.fresh] for g in groups]
        return describe(fresh, version) | totals.means() | self._account(updates, done, began, fresh)

    def _account(
        self,
        updates: list[Update],
        done: list[tuple[float, float]],
        began: float,
        fresh: list[list[Any]],
    ) -> dict[str, float]:
        seconds = time.perf_counter() - began
        trained = sum(len(s.targets) for group in fresh for s in group)
        return {
            "loss": sum(loss for loss, _ in done) / max(len(done), 1),
            "grad_norm": max((norm for _, norm in done), default=0.0),
            "learning_rate": float(self.optimizer.param_groups[0]["lr"]),
            "updates": float(len(done)),
            "forward_passes": float(sum(len(update.packs) for update in updates)),
            "tokens": float(trained),
            "tokens_total": float(sum(len(s.ids) for group in fresh for s in group)),
            "tokens_computed": float(sum(pack.length for u in updates for pack in u.packs)),
            "tokens_per_s": trained / max(seconds, 1e-9),
            "train_s": seconds,
            "autocast_bf16": float(self._placement.autocast is torch.bfloat16),
        }

    def _set_learning_rate(self, step: int) -> None:
        warmup = self._algorithm.warmup_steps
        factor = min(1.0, step / warmup) if warmup else 1.0
        for group in self.optimizer.param_groups:
            group["lr"] = self._algorithm.learning_rate * factor

    def _old_logprobs(self, updates: list[Update], cancelled: Callable[[], bool]) -> dict[str, Tensor]:
        """Log-probabilities under the policy as it is now, for every sequence of any update."""
        old: dict[str, Tensor] = {}
        for update in updates:
            for pack in update.packs:
                if all(member.episode_id in old for member in pack.members):
                    continue
                _check(cancelled)
                batch = collate(pack, update.weight_of).to(self._placement.device)
                with torch.no_grad(), self._autocast():
                    logprobs = token_logprobs(self.model, batch, self._temperature)
                old.update(zip(batch.names, logprobs.split(batch.lengths), strict=True))
        return old

    def _apply(
        self, update: Update, old: dict[str, Tensor], totals: TokenTotals, cancelled: Callable[[], bool]
    ) -> tuple[float, float]:
        """One optimizer update; returns loss and gradient norm before clipping."""
        self.optimizer.zero_grad(set_to_none=False)
        loss_sum = 0.0
        for pack in update.packs:
            _check(cancelled)
            batch = collate(pack, update.weight_of).to(self._placement.device)
            loss_sum += self._backward(batch, [old[n] for n in batch.names] if old else None, totals)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self._algorithm.grad_clip)
        if not finite([norm]):
            raise StepRefused("non_finite_gradient", "the gradient norm is not finite; weights are unchanged")
        self.optimizer.step()
        return loss_sum, float(norm)

    def _backward(self, batch: Batch, old: list[Tensor] | None, totals: TokenTotals) -> float:
        with self._autocast():
            current = token_logprobs(self.model, batch, self._temperature)
        before = torch.cat(old) if old is not None else current.detach()
        loss, stats = policy_loss(
            current, before, batch.behaviour, batch.advantages, batch.weights, self._loss
        )
        if not finite([loss]):
            raise StepRefused("non_finite_loss", "the loss is not finite; weights are unchanged")
        totals.add(stats)
        loss.backward()
        return float(loss.detach())

    def release(self) -> None:
        """Let go of the memory, the accelerator's too. The trainer is of no use afterwards."""
        del self.model, self.optimizer
        gc.collect()
        if self._placement.device.type == "cuda":
            torch.cuda.empty_cache()

    def tensors(self) -> dict[str, Tensor]:
        """Everything that a later `restore` needs, by name; views of live memory, not copies."""
        out = {"rng/torch": torch.get_rng_state()}
        for name, parameter in self.model.named_parameters():
            out[f"weights/{name}"] = parameter.detach()
            for key, value in self.optimizer.state.get(parameter, {}).items():
                out[f"{key}/{name}"] = value
        return out

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over what `tensors` gave. Raises KeyError when a weight is missing."""
        torch.set_rng_state(tensors["rng/torch"])
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(tensors[f"weights/{name}"])
                state = {key: tensors.get(f"{key}/{name}") for key in ADAM_STATE}
                if all(value is not None for value in state.values()):
                    self.optimizer.state[parameter] = {
                        key: value.clone() if key == "step" else value.to(parameter.device, copy=True)
                        for key, value in state.items()
                        if value is not None
                    }

    def _autocast(self) -> AbstractContextManager[Any]:
        if self._placement.autocast is None:
            return contextlib.nullcontext()
        context: AbstractContextManager[Any] = torch.autocast(
            self._placement.device.type, dtype=self._placement.autocast
        )
        return context


def _check(cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise StepCancelled
