"""States of runs, groups and episodes, and which changes are legal.

`queued → generating → executing → (generating …) → grading → graded → trained | discarded`; an
infrastructure failure starts a new attempt in the same stage, or ends in `failed` when attempts are used up.
"""

from __future__ import annotations

from enum import StrEnum


class EpisodeState(StrEnum):
    QUEUED = "queued"
    GENERATING = "generating"
    EXECUTING = "executing"
    GRADING = "grading"
    GRADED = "graded"
    TRAINED = "trained"
    DISCARDED = "discarded"
    FAILED = "failed"


class GroupState(StrEnum):
    OPEN = "open"
    SUBMITTED = "submitted"
    TRAINED = "trained"
    DISCARDED = "discarded"
    FINISHED = "finished"


class RunState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


E = EpisodeState

IN_FLIGHT = (E.GENERATING, E.EXECUTING, E.GRADING)
UNFINISHED = (E.QUEUED, *IN_FLIGHT)
TERMINAL = (E.TRAINED, E.DISCARDED, E.FAILED)
"""`graded` is terminal too, in evaluation runs."""

LEGAL: dict[EpisodeState, tuple[EpisodeState, ...]] = {
    E.QUEUED: (E.GENERATING, E.DISCARDED, E.FAILED),
    E.GENERATING: (E.GENERATING, E.EXECUTING, E.GRADING, E.DISCARDED, E.FAILED),
    E.EXECUTING: (E.EXECUTING, E.GENERATING, E.GRADING, E.DISCARDED, E.FAILED),
    E.GRADING: (E.GRADING, E.GRADED, E.DISCARDED, E.FAILED),
    E.GRADED: (E.TRAINED, E.DISCARDED),
    E.TRAINED: (),
    E.DISCARDED: (),
    E.FAILED: (),
}

RUN_OVER = (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED)


class IllegalTransition(Exception):
    """A bug: the state machine was asked for a change that it does not have."""


def check(before: EpisodeState, after: EpisodeState) -> None:
    """Raise IllegalTransition unless `before → after` is in the table."""
    if after not in LEGAL[before]:
        raise IllegalTransition(f"{before} → {after}")
