"""Changes of an episode's state: the row, the event for everybody else, the span at the end."""

from __future__ import annotations

from sandpiper.store.db.models import Episode, Run
from sandpiper.telemetry import metrics, tracing
from sandpiper.topics import EPISODE_EVENTS
from sandpiper.v1.events_pb2 import EpisodeEvent

from .requests import episode_ref
from .states import EpisodeState, check
from .work import Work


def root_traceparent(episode: Episode) -> str:
    """W3C traceparent of the episode's root span."""
    return tracing.root_traceparent(episode.trace_id, episode.root_span_id)


def parent_of(episode: Episode) -> str:
    """The span below which the episode's next message belongs: the current one where it is in the episode's
    trace, else the root (admission, sweeper: nobody's message caused them)."""
    current = tracing.current_traceparent()
    if current is not None and current.split("-")[1] == episode.trace_id:
        return current
    return root_traceparent(episode)


def changed(work: Work, episode: Episode, state: EpisodeState, reason: str | None = None) -> None:
    """Change the state of a locked row and owe the event. Raises IllegalTransition."""
    before = EpisodeState(episode.state)
    check(before, state)
    episode.state, episode.reason, episode.stage_at = state.value, reason, work.now
    metrics.EPISODE_TRANSITIONS.labels(state=state.value).inc()
    work.owe(EPISODE_EVENTS, episode.id, _event(work, episode, before), traceparent=parent_of(episode))


def _event(work: Work, episode: Episode, before: EpisodeState) -> EpisodeEvent:
    return EpisodeEvent(
        ref=episode_ref(episode),
        state=episode.state,
        previous=before.value,
        reason=episode.reason or "",
        at=work.now,
        reward=episode.reward or 0.0,
        has_reward=episode.reward is not None,
        passed=bool(episode.passed),
        task_id=episode.task_id,
        trace_id=episode.trace_id,
    )


def finish(work: Work, run: Run, episode: Episode, state: EpisodeState, reason: str | None) -> None:
    """Go to a terminal state."""
    changed(work, episode, state, reason)
    finished(work, run, episode)


def finished(work: Work, run: Run, episode: Episode) -> None:
    """The episode is over: note the time, and emit its root span once the transaction has committed."""
    episode.finished_at = work.now
    work.after_commit.append(lambda: emit_root_span(episode, run.trace_parent, work.now))


def emit_root_span(episode: Episode, run_traceparent: str | None, end: float) -> None:
    """The episode's root span, from its admission to `end`, linked to the request that made the run."""
    tracing.emit_span(
        "episode",
        root_traceparent(episode),
        start=episode.created_at,
        end=end,
        links=[run_traceparent] if run_traceparent else [],
        attrs={
            "sandpiper.episode_id": episode.id,
            "sandpiper.run_id": episode.run_id,
            "sandpiper.task_id": episode.task_id,
            "sandpiper.state": episode.state,
            "sandpiper.attempts": episode.attempt,
            "sandpiper.turns": episode.turn + 1,
            "sandpiper.reward": episode.reward if episode.reward is not None else "none",
        },
    )
