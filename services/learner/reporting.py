"""What a step tells the world: its event, its offsets, its traces and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import structlog
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from sandpiper.telemetry import metrics, tracing
from sandpiper.v1.training_pb2 import TrainingStep
from services.learner.buffer import Place, Take, Waiting
from services.learner.training.trainer import TakenGroup

log = structlog.get_logger(__name__)
_ids = RandomIdGenerator()

FRESH_LOG_RATIO = 0.03
"""Mean |log π_old − log π_b| on fresh data beyond what rounding in an engine explains."""


def event_of(
    run_id: str,
    step: int,
    take: Take,
    groups: Sequence[TakenGroup],
    values: Mapping[str, float],
    started_at: float,
) -> TrainingStep:
    """The event of a step that was computed; `seconds` and `checkpoint` come later."""
    return TrainingStep(
        run_id=run_id,
        step=step,
        policy_version=step,
        episode_ids=[s.episode_id for g in groups for s in g.sequences if s.episode_id in g.fresh],
        group_ids=[group.group_id for group in take.groups],
        discarded_group_ids=[group.group_id for group in take.discarded],
        metrics=dict(values),
        started_at=started_at,
    )


def offsets(places: Iterable[Place], take: Take) -> dict[str, dict[int, int]]:
    """Topic -> partition -> first offset that may still be unconsumed once `take` is committed."""
    consumed = {place for group in take.all for place in group.places}
    result: dict[str, dict[int, int]] = {}
    for place in consumed:
        partitions = result.setdefault(place.topic, {})
        partitions[place.partition] = max(partitions.get(place.partition, 0), place.offset + 1)
    for place in places:
        if place not in consumed and place.partition in result.get(place.topic, {}):
            partitions = result[place.topic]
            partitions[place.partition] = min(partitions[place.partition], place.offset)
    return result


def traces(take: Take, groups: Sequence[TakenGroup]) -> list[str]:
    """Root spans of the episodes that are trained."""
    fresh = {episode for group in groups for episode in group.fresh}
    sequences = (s for group in take.groups for s in group.sequences)
    return [s.trace_parent for s in sequences if s.episode_id in fresh and s.trace_parent]


def trace_episodes(
    roots: Sequence[str], own: str | None, start: float, end: float, event: TrainingStep
) -> None:
    """A span `train` in the trace of each episode, linked to the step's span `own`."""
    for root in roots:
        context = tracing.parse_traceparent(root)
        if context is None:
            continue
        span_id = f"{_ids.generate_span_id():016x}"
        child = f"00-{context.trace_id:032x}-{span_id}-{int(context.trace_flags):02x}"
        attrs: dict[str, str | int] = {"run_id": event.run_id, "step": event.step}
        tracing.emit_span("train", child, start, end, links=[own], attrs=attrs, parent=root)


def observe(event: TrainingStep, take: Take) -> None:
    """Prometheus, and a warning where engine and learner do not have the same policy."""
    values = event.metrics
    if not values["staleness_max"] and values["engine_log_ratio_abs"] > FRESH_LOG_RATIO:
        log.warning(
            "engine_and_learner_disagree",
            run_id=event.run_id,
            step=event.step,
            mean_abs_log_ratio=values["engine_log_ratio_abs"],
        )
    metrics.TRAINING_STEP_SECONDS.observe(event.seconds)
    metrics.TRAINING_STEPS.inc()
    metrics.TRAJECTORIES_TRAINED.inc(len(event.episode_ids))
    metrics.REWARD_MEAN.labels(run=event.run_id).set(event.metrics["reward_mean"])
    trained = set(event.episode_ids)
    for group in take.groups:
        for episode, oldest in group.version_min.items():
            if episode in trained:
                metrics.STALENESS.observe(event.step - 1 - oldest)
    count_discarded(take.discarded)


def count_discarded(groups: Iterable[Waiting]) -> None:
    """Trajectories that were fit for training once and are too old now."""
    stale = sum(len(group.version_min) for group in groups)
    metrics.TRAJECTORIES_DROPPED.labels(reason="stale").inc(stale)
