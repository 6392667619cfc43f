"""Results of the other services, matched to the episode, attempt, turn and stage that asked for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import structlog
from sqlalchemy import select

from sandpiper.runs import RunDocument
from sandpiper.store.db.models import Episode, Group, Run, TaskRow
from sandpiper.v1 import common_pb2, grading_pb2, inference_pb2, sandbox_pb2
from sandpiper.v1.sandbox_pb2 import OUTCOME_INFRA_ERROR

from . import groups
from .episodes import Episodes
from .runs import end_if_spent, lock_run
from .states import EpisodeState
from .work import Work

log = structlog.get_logger(__name__)

Result = inference_pb2.TurnGenerated | sandbox_pb2.SandboxResult | grading_pb2.EpisodeGraded


@dataclass(frozen=True)
class Found:
    """The locked rows that a result is about."""

    run: Run
    group: Group
    task: TaskRow
    episodes: Episodes


async def generated(work: Work, result: inference_pb2.TurnGenerated) -> None:
    """inference.results"""
    found = await _expected(work, result, EpisodeState.GENERATING)
    if found is None:
        return
    if result.finish_reason == "failed":
        await failed(work, found, result.failure)
    else:
        await found.episodes.generated(result)


async def executed(work: Work, result: sandbox_pb2.SandboxResult) -> None:
    """sandbox.results"""
    found = await _expected(work, result, EpisodeState.EXECUTING)
    if found is None:
        return
    if result.outcome == OUTCOME_INFRA_ERROR:
        await failed(work, found, result.failure)
    else:
        await found.episodes.executed(result)


async def graded(work: Work, result: grading_pb2.EpisodeGraded) -> None:
    """grading.results"""
    found = await _expected(work, result, EpisodeState.GRADING)
    if found is None:
        return
    if not result.has_reward:
        await failed(work, found, result.failure)
        return
    await found.episodes.graded(result)
    await work.session.flush()
    await groups.close_if_ready(work, found.run, found.group)
    if found.run.mode == "eval" and found.group.state != "open":
        await work.session.flush()
        run = await lock_run(work, found.run.id)
        if run is not None:
            await end_if_spent(work, run)


async def failed(work: Work, found: Found, failure: common_pb2.Failure) -> None:
    """An infrastructure failure of the current stage."""
    if await found.episodes.retry(failure):
        return
    await work.session.flush()
    document = RunDocument.model_validate(found.run.document)
    await groups.replace_failed(work, found.run, document, found.group, found.task)


async def find(work: Work, episode_id: str) -> Found | None:
    """Lock group and episode, in this order (as everything that closes a group does)."""
    group_id = (
        await work.session.scalars(select(Episode.group_id).where(Episode.id == episode_id))
    ).one_or_none()
    if group_id is None:
        return None
    lock: dict[str, Any] = {"with_for_update": True, "populate_existing": True}
    group = await work.session.get_one(Group, group_id, **lock)
    episode = await work.session.get_one(Episode, episode_id, **lock)
    run = await work.session.get_one(Run, group.run_id)
    query = select(TaskRow).where(TaskRow.task_set_id == run.task_set_id, TaskRow.id == episode.task_id)
    task = (await work.session.scalars(query)).one()
    return Found(run, group, task, Episodes(work, run, episode, task))


async def _expected(work: Work, result: Result, stage: EpisodeState) -> Found | None:
    ref = result.ref
    found = await find(work, ref.episode_id)
    if found is None:
        log.warning("result_of_unknown_episode", episode_id=ref.episode_id)
        return None
    episode = found.episodes.episode
    if (episode.state, episode.attempt, episode.turn) == (stage, ref.attempt, ref.turn):
        return found
    log.info(
        "late_result_ignored",
        episode_id=episode.id,
        result=type(result).__name__,
        of=f"attempt {ref.attempt} turn {ref.turn}",
        now=f"{episode.state} attempt {episode.attempt} turn {episode.turn}",
    )
    return None
