"""Responses about runs."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from sandpiper.store.db.models import Run, TrainingStepRow
from services.api.schemas.common import Json, View

TERMINAL = frozenset({"succeeded", "failed", "cancelled"})


class RunSummary(View):
    """A run in a list."""

    id: str
    name: str
    mode: str
    """train | eval"""
    state: str
    """waiting | running | paused | succeeded | failed | cancelled"""
    reason: str | None
    task_set_id: str
    policy_run_id: str
    """The run whose policy versions it acts with."""
    policy_version: int | None
    """Newest version; null until version 0 is published."""
    step: int
    """Optimizer steps done."""
    steps_budget: int | None
    """Optimizer steps wanted; null for an evaluation."""
    requested_by: str
    created_at: float
    started_at: float | None
    finished_at: float | None

    @classmethod
    def fields_of(cls, row: Run) -> dict[str, Any]:
        """The fields above, from a row."""
        own = {name: getattr(row, name) for name in RunSummary.model_fields if name != "steps_budget"}
        budget = row.document.get("budget", {}).get("steps") if row.mode == "train" else None
        return {**own, "steps_budget": budget}

    @classmethod
    def of(cls, row: Run) -> RunSummary:
        return RunSummary(**cls.fields_of(row))


class StepView(View):
    """An optimizer step."""

    step: int
    policy_version: int
    """The version that it published."""
    metrics: dict[str, float | None]
    started_at: float
    seconds: float
    recorded_at: float

    @classmethod
    def of(cls, row: TrainingStepRow) -> StepView:
        return cls.model_validate(row)


class EpisodeCounts(BaseModel):
    """Episodes of a run by what became of them."""

    total: int = 0
    by_state: dict[str, int] = Field(default_factory=dict)
    in_flight: int = 0
    """queued, generating, executing or grading"""
    graded: int = 0
    """Have a verdict (trained and discarded ones included)."""
    passed: int = 0
    failed: int = 0
    """No attempt brought a verdict: infrastructure, not the policy."""


class Progress(BaseModel):
    """How far a run is and how it does."""

    done: float
    """0..1 of the budget."""
    pass_rate: float | None
    """Of all graded episodes."""
    mean_reward: float | None
    recent_pass_rate: float | None
    """Of the newest 128 graded episodes."""
    recent_reward: float | None
    recent_output_tokens: float | None
    """Mean length of their answers."""
    tokens_per_s: float
    """Generated in the last minute (or since the end of a finished run: over its whole time)."""
    output_tokens: int
    staleness_mean: float | None
    """Of the episodes that the newest step trained, in versions."""
    staleness_max: int | None
    expected_episodes: int | None
    """Evaluation: tasks × samples."""
    elapsed_s: float
    remaining_s: float | None
    """An estimate from the newest steps; null when there is nothing to go by."""


class PolicyView(View):
    """A published policy version."""

    run_id: str
    version: int
    step: int
    weights_sha256: str
    published_at: float


class RunDetail(RunSummary):
    """A run with its progress."""

    document: Json
    """The run document as it was accepted."""
    episodes: EpisodeCounts
    progress: Progress
    recent_steps: list[StepView]
    """Newest last, at most 20."""
    policies: list[PolicyView]
    """Newest last, at most 5."""
    trace_id: str | None
    """Of the request that created it."""


class FileView(BaseModel):
    """A file of a policy."""

    sha256: str
    bytes: int
    href: str
    """Where to download it."""


class ManifestView(BaseModel):
    """What a policy version is made of."""

    run_id: str
    version: int
    step: int
    base: str
    dtype: str
    weights_sha256: str
    created_at: float
    files: dict[str, FileView]
