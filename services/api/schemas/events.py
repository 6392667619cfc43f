"""Events of a run's stream."""

from __future__ import annotations

from pydantic import BaseModel

from sandpiper.v1.events_pb2 import EpisodeEvent


class EpisodeEventView(BaseModel):
    """An episode changed its state."""

    run_id: str
    group_id: str
    episode_id: str
    attempt: int
    turn: int
    task_id: str
    state: str
    previous: str
    reason: str
    at: float
    reward: float | None
    passed: bool | None
    """Null until there is a reward."""
    trace_id: str

    @classmethod
    def of(cls, event: EpisodeEvent) -> EpisodeEventView:
        return cls(
            run_id=event.ref.run_id,
            group_id=event.ref.group_id,
            episode_id=event.ref.episode_id,
            attempt=event.ref.attempt,
            turn=event.ref.turn,
            task_id=event.task_id,
            state=event.state,
            previous=event.previous,
            reason=event.reason,
            at=event.at,
            reward=event.reward if event.has_reward else None,
            passed=event.passed if event.has_reward else None,
            trace_id=event.trace_id,
        )
