"""Responses about episodes."""

from __future__ import annotations

from pydantic import BaseModel

from sandpiper.store.db.models import Turn
from services.api.schemas.common import Json, View


class EpisodeSummary(View):
    """An episode in a list."""

    id: str
    run_id: str
    group_id: str
    index: int
    """Position in its group."""
    task_id: str
    state: str
    """queued | generating | executing | grading | graded | trained | discarded | failed"""
    reason: str | None
    attempt: int
    turn: int
    reward: float | None
    passed: bool | None
    verdict: str | None
    version_min: int | None
    """Oldest policy version that generated any of its tokens."""
    version_max: int | None
    output_tokens: int
    trained_step: int | None
    executor_id: str | None
    trace_id: str
    created_at: float
    stage_at: float
    """When its state began."""
    finished_at: float | None


class TurnView(View):
    """One generation and the execution of its action."""

    attempt: int
    number: int
    messages: list[Json]
    """What the policy was shown anew: `{"role", "content"}`."""
    text: str | None
    """What it answered."""
    finish_reason: str | None
    prompt_tokens: int | None
    output_tokens: int | None
    version_min: int | None
    version_max: int | None
    engine: str | None
    action: Json | None
    outcome: str | None
    exit_code: int | None
    usage: Json | None
    """Times, memory, processes and output of the execution."""
    observation: str | None
    """What it is shown next."""
    has_log: bool
    snapshot_sha256: str | None
    executor_id: str | None
    requested_at: float
    generated_at: float | None
    executed_at: float | None
    generate_s: float | None
    generate_queued_s: float | None

    @classmethod
    def of(cls, row: Turn) -> TurnView:
        derived = {"has_log", "snapshot_sha256"}
        fields = {name: getattr(row, name) for name in cls.model_fields if name not in derived}
        sha256 = (row.snapshot or {}).get("sha256")
        return cls(**fields, has_log=bool(row.log), snapshot_sha256=sha256)


class AttemptView(View):
    """One try at an episode; a new one starts when infrastructure fails."""

    number: int
    state: str
    """running | done | failed"""
    boundary: str | None
    """What failed: inference | sandbox | grading | store | bus | deadline."""
    reason: str | None
    detail: str | None
    started_at: float
    ended_at: float | None


class EpisodeDetail(EpisodeSummary):
    """An episode with everything that happened in it."""

    seed: int
    grader_version: str | None
    reward_parts: list[Json] | None
    """`{"name", "value", "weight", "explanation"}`"""
    tests: list[Json] | None
    """Per hidden test: `{"id", "status", "kind", "message", "seconds"}`."""
    has_evidence: bool
    deadline: float
    attempts: list[AttemptView]
    turns: list[TurnView]
    """Of every attempt, in order."""


class Span(BaseModel):
    """Where a turn's output lies in the token list: `[start, end)`."""

    turn: int
    start: int
    end: int


class TrajectoryView(BaseModel):
    """Token ids of an episode as the engine saw and produced them. All lists have one entry per token."""

    episode_id: str
    run_id: str
    attempt: int
    policy_run_id: str
    token_ids: list[int]
    mask: list[int]
    """1: sampled by the policy, so trained; 0: prompt or observation."""
    logprobs: list[float | None]
    """Natural log under the version that sampled it; null where the mask is 0."""
    versions: list[int | None]
    """Policy version that sampled it; null where the mask is 0."""
    turns: list[Span]
    reward: float | None
    passed: bool | None
