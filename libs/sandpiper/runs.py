"""The run document: one validated description of a training or evaluation run (YAML or JSON)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from sandpiper.tasks.model import Split, Strict

MOST = 2**31 - 1
"""Largest whole number: what Postgres, protobuf and torch all hold."""
Share = Annotated[float, Field(ge=0, lt=1)]


class PolicySource(Strict):
    """Where the policy comes from."""

    kind: Literal["starter", "tiny", "path", "hub", "run"] = "starter"
    """`starter`: packaged SmolLM2-135M-Instruct; `tiny`: small random weights and a byte tokenizer;
    `path`: a local Hugging Face folder; `hub`: a hub id; `run`: a version that another run published."""
    path: str | None = None
    hub_id: str | None = None
    run_id: str | None = None
    version: int | None = Field(None, ge=0, le=MOST)
    """With `run`: which version; unset means its newest."""
    seed: int = Field(0, ge=-MOST, le=MOST)
    """With `tiny`: seed of the random weights."""

    @model_validator(mode="after")
    def _has_what_the_kind_needs(self) -> PolicySource:
        needs = {"path": "path", "hub": "hub_id", "run": "run_id"}.get(self.kind)
        if needs and getattr(self, needs) is None:
            raise ValueError(f"policy.{needs} is required where policy.kind is {self.kind!r}")
        return self


class TaskSelection(Strict):
    """Which tasks of which task set."""

    task_set: str
    """Task set id, or `name` / `name@version` (newest version when left out)."""
    split: Split | None = "train"
    """None takes both splits."""
    ids: tuple[str, ...] = ()
    """Only these task ids; empty takes all of the split."""
    limit: int | None = Field(None, ge=1, le=MOST)
    """At most so many tasks, in the order of the set."""


class Algorithm(Strict):
    """GRPO with clip-higher; formulas in docs/algorithms.md."""

    group_size: int = Field(8, ge=1, le=256)
    """G: episodes per group. 1 only makes sense for evaluation."""
    groups_per_step: int = Field(8, ge=1, le=1024)
    """Groups per optimizer step; B = group_size * groups_per_step trajectories."""
    learning_rate: float = Field(1e-4, gt=0, le=1)
    betas: tuple[Share, Share] = (0.9, 0.95)
    weight_decay: float = Field(0.0, ge=0)
    grad_clip: float = Field(1.0, gt=0)
    clip_low: float = Field(0.2, gt=0, lt=1)
    clip_high: float = Field(0.28, gt=0)
    tis_cap: float = Field(2.0, gt=0)
    """C of token truncated importance sampling: weight = min(pi_learner_old / pi_engine, C)."""
    loss_norm: Literal["token", "sequence"] = "token"
    normalise_std: bool = True
    """False is Dr. GRPO: advantages are R - mean."""
    filter_zero_variance: bool = True
    """Drop and refill groups whose rewards are all equal."""
    max_staleness: int = Field(1, ge=0, le=64)
    """eta: a trajectory may be at most so many versions behind."""
    inner_epochs: int = Field(1, ge=1, le=8)
    minibatches: int = Field(1, ge=1, le=64)
    """Optimizer updates per step and epoch."""
    warmup_steps: int = Field(0, ge=0, le=MOST)
    dtype: Literal["bf16", "fp32"] = "bf16"
    """Autocast type; weights and optimizer state stay fp32."""
    micro_tokens: int = Field(4096, ge=64, le=MOST)
    """Padded tokens per forward pass."""


class SamplingSettings(Strict):
    temperature: float = Field(1.0, ge=0, le=4)
    top_p: float = Field(1.0, gt=0, le=1)
    stop: tuple[str, ...] = ()


class Budget(Strict):
    """When a run ends. The first bound that is reached ends it."""

    steps: int = Field(8, ge=0, le=MOST)
    """Optimizer steps (training)."""
    wall_s: float | None = Field(None, gt=0)
    episodes: int | None = Field(None, ge=1, le=MOST)
    zero_variance_groups: int | None = Field(None, ge=1, le=MOST)
    """Groups in a row whose rewards are all equal (training): every task is solved, or none can be. Unset
    means 8 steps' worth."""


class Deadlines(Strict):
    """Separate budgets, in seconds; each is absolute in the messages."""

    generation_s: float = Field(120, gt=0)
    execution_s: float = Field(60, gt=0)
    """Queueing and set-up included; the program's own limit is the task's wall_s."""
    grading_s: float = Field(60, gt=0)
    episode_s: float = Field(600, gt=0)
    group_s: float = Field(900, gt=0)
    """After this a group closes at its quorum and the stragglers are cut."""


class RunLimits(Strict):
    max_running: int = Field(128, ge=1, le=MOST)
    """Episodes in flight at once."""
    max_attempts: int = Field(3, ge=1, le=20)
    """Attempts per episode when infrastructure fails under it."""
    quorum: float = Field(0.75, gt=0, le=1)
    """Share of a group that must be graded for it to be trained."""
    max_turns: int | None = Field(None, ge=1, le=MOST)
    """Overrides the task's limit when lower."""
    max_new_tokens: int | None = Field(None, ge=1, le=MOST)
    keep_policies: int = Field(3, ge=1, le=MOST)
    """Newest published versions kept in the object store, besides version 0 and the last."""


class RunDocument(Strict):
    """One run: mode, policy, task set, algorithm, budgets, limits."""

    name: str = Field("run", min_length=1, max_length=128)
    mode: Literal["train", "eval"] = "train"
    policy: PolicySource = PolicySource()
    tasks: TaskSelection
    algorithm: Algorithm = Algorithm()
    sampling: SamplingSettings = SamplingSettings()
    budget: Budget = Budget()
    deadlines: Deadlines = Deadlines()
    limits: RunLimits = RunLimits()
    samples_per_task: int = Field(1, ge=1, le=1024)
    """Evaluation only: episodes per task."""
    seed: int = Field(0, ge=-MOST, le=MOST)

    @model_validator(mode="after")
    def _trainable(self) -> RunDocument:
        if self.mode == "train" and self.algorithm.group_size < 2:
            raise ValueError(
                "algorithm.group_size must be at least 2 to train: rewards are compared in groups"
            )
        if self.mode == "train" and self.budget.steps < 1:
            raise ValueError("budget.steps must be at least 1 to train")
        return self
