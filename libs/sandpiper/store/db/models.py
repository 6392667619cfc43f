"""The Postgres schema. `rollout-orchestrator` is its only writer; `api` reads.

Times are unix seconds (double precision): they are compared with deadlines that travel in messages.
Large values are `sandpiper.v1.Blob`s kept as JSON `{"uri", "sha256", "bytes"}`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

Json = dict[str, Any]


class Base(DeclarativeBase):
    """Maps Python types to the column types used throughout."""

    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text,
        float: Float(53),
        int: BigInteger,
        bool: Boolean,
        bytes: LargeBinary,
        Json: JSONB(none_as_null=True),
        list[str]: JSONB(none_as_null=True),
        list[Json]: JSONB(none_as_null=True),
    }


class TaskSet(Base):
    __tablename__ = "task_sets"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    version: Mapped[str]
    tasks_blob: Mapped[Json]
    task_count: Mapped[int]
    submitted_by: Mapped[str]
    created_at: Mapped[float]

    __table_args__ = (Index("ix_task_sets_name", "name", "created_at"),)


class TaskRow(Base):
    __tablename__ = "tasks"

    task_set_id: Mapped[str] = mapped_column(ForeignKey("task_sets.id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[str]
    family: Mapped[str]
    split: Mapped[str]
    language: Mapped[str]
    blob: Mapped[Json]
    """The normalised task, as its own object (JSON)."""
    spec: Mapped[Json]
    """The task without hidden tests and reference: what the orchestrator needs and the api may show."""

    __table_args__ = (UniqueConstraint("task_set_id", "id"),)


class Run(Base):
    __tablename__ = "runs"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    mode: Mapped[str]
    state: Mapped[str]
    """waiting (for version 0) | running | paused | succeeded | failed | cancelled"""
    reason: Mapped[str | None]
    document: Mapped[Json]
    task_set_id: Mapped[str] = mapped_column(ForeignKey("task_sets.id"))
    policy_run_id: Mapped[str]
    """Whose versions it acts with: itself, or the run named by policy.kind = run."""
    policy_version: Mapped[int | None]
    """Newest published version of `policy_run_id` that counts here; NULL until version 0 is out."""
    step: Mapped[int] = mapped_column(default=0)
    next_group: Mapped[int] = mapped_column(default=0)
    """Cursor into the task order; wraps."""
    requested_by: Mapped[str]
    created_at: Mapped[float]
    started_at: Mapped[float | None]
    finished_at: Mapped[float | None]
    trace_parent: Mapped[str | None]

    __table_args__ = (Index("ix_runs_state", "state"),)


class Group(Base):
    __tablename__ = "groups"

    id: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"))
    index: Mapped[int]
    task_id: Mapped[str]
    state: Mapped[str]
    """open | submitted (to the learner) | trained | discarded | finished (evaluation)"""
    reason: Mapped[str | None]
    size: Mapped[int]
    quorum: Mapped[int]
    deadline: Mapped[float]
    created_at: Mapped[float]
    closed_at: Mapped[float | None]
    submitted_at: Mapped[float | None]
    trained_step: Mapped[int | None]

    __table_args__ = (UniqueConstraint("run_id", "index"), Index("ix_groups_open", "state", "deadline"))


class Episode(Base):
    __tablename__ = "episodes"

    id: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"))
    group_id: Mapped[str] = mapped_column(ForeignKey("groups.id"))
    index: Mapped[int]
    """Position in its group."""
    task_id: Mapped[str]
    state: Mapped[str]
    """queued | generating | executing | grading | graded | trained | discarded | failed"""
    reason: Mapped[str | None]
    attempt: Mapped[int]
    turn: Mapped[int]
    seed: Mapped[int]
    trace_id: Mapped[str]
    root_span_id: Mapped[str]
    partition: Mapped[int | None]
    """Sticky placement of its sandbox."""
    executor_id: Mapped[str | None]
    snapshot: Mapped[Json | None]
    tokens: Mapped[Json | None]
    """TurnTokens blob of the newest turn of the current attempt."""
    stage_deadline: Mapped[float]
    deadline: Mapped[float]
    created_at: Mapped[float]
    stage_at: Mapped[float]
    """When the current state began."""
    finished_at: Mapped[float | None]
    reward: Mapped[float | None]
    reward_parts: Mapped[list[Json] | None]
    tests: Mapped[list[Json] | None]
    passed: Mapped[bool | None]
    verdict: Mapped[str | None]
    evidence: Mapped[Json | None]
    grader_version: Mapped[str | None]
    version_min: Mapped[int | None]
    version_max: Mapped[int | None]
    output_tokens: Mapped[int] = mapped_column(default=0)
    trained_step: Mapped[int | None]

    __table_args__ = (
        UniqueConstraint("group_id", "index"),
        Index("ix_episodes_due", "state", "stage_deadline"),
        Index("ix_episodes_run", "run_id", "created_at", "id"),
    )


class Attempt(Base):
    __tablename__ = "attempts"

    episode_id: Mapped[str] = mapped_column(ForeignKey("episodes.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[str]
    """running | done | failed"""
    boundary: Mapped[str | None]
    reason: Mapped[str | None]
    detail: Mapped[str | None]
    started_at: Mapped[float]
    ended_at: Mapped[float | None]


class Turn(Base):
    __tablename__ = "turns"

    episode_id: Mapped[str] = mapped_column(ForeignKey("episodes.id"), primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    messages: Mapped[list[Json]]
    """What the policy was shown anew in this turn."""
    text: Mapped[str | None]
    finish_reason: Mapped[str | None]
    tokens: Mapped[Json | None]
    prompt_tokens: Mapped[int | None]
    output_tokens: Mapped[int | None]
    version_min: Mapped[int | None]
    version_max: Mapped[int | None]
    engine: Mapped[str | None]
    action: Mapped[Json | None]
    outcome: Mapped[str | None]
    exit_code: Mapped[int | None]
    usage: Mapped[Json | None]
    observation: Mapped[str | None]
    log: Mapped[Json | None]
    snapshot: Mapped[Json | None]
    executor_id: Mapped[str | None]
    requested_at: Mapped[float]
    generated_at: Mapped[float | None]
    executed_at: Mapped[float | None]
    generate_s: Mapped[float | None]
    generate_queued_s: Mapped[float | None]


class PolicyVersion(Base):
    __tablename__ = "policy_versions"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    manifest: Mapped[Json]
    weights_sha256: Mapped[str]
    step: Mapped[int]
    published_at: Mapped[float]


class TrainingStepRow(Base):
    __tablename__ = "training_steps"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    policy_version: Mapped[int]
    metrics: Mapped[Json]
    checkpoint: Mapped[Json | None]
    started_at: Mapped[float]
    seconds: Mapped[float]
    recorded_at: Mapped[float]


class StepEpisode(Base):
    """Which step trained which episode. The primary key is the promise: at most one step."""

    __tablename__ = "step_episodes"

    episode_id: Mapped[str] = mapped_column(ForeignKey("episodes.id"), primary_key=True)
    run_id: Mapped[str]
    step: Mapped[int]

    __table_args__ = (Index("ix_step_episodes_step", "run_id", "step"),)


class OutboxRow(Base):
    """A message that a committed transaction owes to Kafka."""

    __tablename__ = "outbox"

    id: Mapped[int] = mapped_column(Integer().with_variant(BigInteger, "postgresql"), primary_key=True)
    topic: Mapped[str]
    key: Mapped[str]
    partition: Mapped[int | None]
    message_id: Mapped[str]
    headers: Mapped[Json]
    payload: Mapped[bytes]
    created_at: Mapped[float]
    published_at: Mapped[float | None]

    __table_args__ = (
        Index("ix_outbox_unpublished", "id", postgresql_where="published_at IS NULL"),
        Index("ix_outbox_published_at", "published_at"),
    )


class ProcessedMessage(Base):
    __tablename__ = "processed_messages"

    consumer: Mapped[str] = mapped_column(primary_key=True)
    message_id: Mapped[str] = mapped_column(primary_key=True)
    processed_at: Mapped[float]

    __table_args__ = (Index("ix_processed_messages_at", "processed_at"),)
