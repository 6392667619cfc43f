"""Groups: opening one, closing it at its quorum, and handing it to the learner.

Invariants:
* a group closes once; its rewards are compared only among episodes that have a verdict;
* an episode that infrastructure failed is replaced by one new episode, never counted as reward 0;
* a group whose task fails again and again (poison) is discarded and its task is left out of the run.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from typing import TypeVar

import structlog
from sqlalchemy import select

from sandpiper.ids import new_id
from sandpiper.runs import RunDocument
from sandpiper.store.blobs import blob_from_json
from sandpiper.store.db.models import Episode, Group, Run, TaskRow, Turn
from sandpiper.topics import TRAJECTORIES
from sandpiper.v1.training_pb2 import Trajectory, TrajectoryGroup

from .episodes import Episodes
from .events import finish, root_traceparent
from .requests import episode_ref
from .states import UNFINISHED, EpisodeState, GroupState
from .work import Work

log = structlog.get_logger(__name__)

T = TypeVar("T")

ZERO_VARIANCE = "zero_variance"
POISON = "poison_task"


async def open_group(work: Work, run: Run, document: RunDocument, task: TaskRow, index: int) -> Group:
    """Admit a group of one task and start all its episodes."""
    size = document.algorithm.group_size if document.mode == "train" else document.samples_per_task
    group = Group(
        id=new_id("grp"),
        run_id=run.id,
        index=index,
        task_id=task.id,
        state=GroupState.OPEN.value,
        size=size,
        quorum=math.ceil(size * document.limits.quorum),
        deadline=work.now + document.deadlines.group_s,
        created_at=work.now,
    )
    work.session.add(group)
    await work.session.flush()
    for position in range(size):
        await start_episode(work, run, document, group, task, position)
    return group


async def start_episode(
    work: Work, run: Run, document: RunDocument, group: Group, task: TaskRow, index: int
) -> None:
    """Admit one episode and ask for its first turn."""
    episode = Episode(
        id=new_id("ep"),
        run_id=run.id,
        group_id=group.id,
        index=index,
        task_id=task.id,
        state=EpisodeState.QUEUED.value,
        attempt=1,
        turn=0,
        seed=_seed(document.seed, group.index, index),
        trace_id=secrets.token_hex(16),
        root_span_id=secrets.token_hex(8),
        stage_deadline=work.now,
        deadline=work.now + document.deadlines.episode_s,
        created_at=work.now,
        stage_at=work.now,
        output_tokens=0,
    )
    work.session.add(episode)
    await work.session.flush()
    await Episodes(work, run, episode, task).begin()


def _seed(run_seed: int, group: int, index: int) -> int:
    digest = hashlib.sha256(f"{run_seed}/{group}/{index}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF


async def replace_failed(work: Work, run: Run, document: RunDocument, group: Group, task: TaskRow) -> None:
    """One episode of an open group failed for good: refill it, or give the group up as poison."""
    episodes = await _episodes(work, group)
    failed = sum(episode.state == EpisodeState.FAILED for episode in episodes)
    if group.state != GroupState.OPEN:
        return
    if failed > group.size:
        log.warning("task_quarantined", run_id=run.id, task_id=task.id, group_id=group.id, failed=failed)
        discard_group(work, run, group, episodes, POISON)
        return
    await start_episode(work, run, document, group, task, len(episodes))


async def close_if_ready(work: Work, run: Run, group: Group, *, overdue: bool = False) -> None:
    """Close an open group when all its episodes have a verdict, or at its quorum once it is overdue."""
    if group.state != GroupState.OPEN:
        return
    episodes = await _episodes(work, group)
    graded = [episode for episode in episodes if episode.state == EpisodeState.GRADED]
    if len(graded) < group.size and not overdue:
        return
    for straggler in episodes:
        if straggler.state in UNFINISHED:
            finish(work, run, straggler, EpisodeState.DISCARDED, "straggler")
    group.closed_at = work.now
    if run.mode == "eval":
        group.state = GroupState.FINISHED.value
    elif len(graded) < max(group.quorum, 2):
        discard_group(work, run, group, graded, "below_quorum")
    else:
        await _submit_or_discard(work, run, group, graded)


async def _submit_or_discard(work: Work, run: Run, group: Group, graded: list[Episode]) -> None:
    algorithm = RunDocument.model_validate(run.document).algorithm
    rewards = {episode.reward for episode in graded}
    if algorithm.filter_zero_variance and len(rewards) == 1:
        return discard_group(work, run, group, graded, ZERO_VARIANCE)
    oldest = _required(run.policy_version) - algorithm.max_staleness
    fresh = [episode for episode in graded if _required(episode.version_min) >= oldest]
    if len(fresh) < max(group.quorum, 2):
        return discard_group(work, run, group, graded, "stale")
    for episode in graded:
        if episode not in fresh:
            finish(work, run, episode, EpisodeState.DISCARDED, "stale")
    group.state = GroupState.SUBMITTED.value
    return await submit(work, group, fresh)


async def submit(work: Work, group: Group, episodes: list[Episode] | None = None) -> None:
    """Owe the group's trajectories to the learner; again when it may have been lost."""
    if episodes is None:
        episodes = [e for e in await _episodes(work, group) if e.state == EpisodeState.GRADED]
    message = TrajectoryGroup(
        run_id=group.run_id,
        group_id=group.id,
        task_id=group.task_id,
        group_index=group.index,
        trajectories=[await _trajectory(work, episode) for episode in episodes],
    )
    group.submitted_at = work.now
    work.owe(TRAJECTORIES, group.run_id, message)


async def _trajectory(work: Work, episode: Episode) -> Trajectory:
    turns = await newest_turns(work, episode.id)
    return Trajectory(
        ref=episode_ref(episode),
        tokens=blob_from_json(episode.tokens),
        turns=[blob_from_json(turn.tokens) for turn in turns if turn.tokens],
        reward=_required(episode.reward),
        passed=bool(episode.passed),
        version_min=_required(episode.version_min),
        version_max=_required(episode.version_max),
        trace_parent=root_traceparent(episode),
    )


async def newest_turns(work: Work, episode_id: str) -> list[Turn]:
    """Of each turn the record of the newest attempt that has tokens for it, in order."""
    query = select(Turn).where(Turn.episode_id == episode_id, Turn.tokens.is_not(None))
    rows = (await work.session.scalars(query.order_by(Turn.number, Turn.attempt))).all()
    return list({row.number: row for row in rows}.values())


def discard_group(work: Work, run: Run, group: Group, episodes: list[Episode], reason: str) -> None:
    """Discard the group and every episode of it that is not over yet."""
    group.state, group.reason = GroupState.DISCARDED.value, reason
    group.closed_at = group.closed_at or work.now
    for episode in episodes:
        if episode.state in (*UNFINISHED, EpisodeState.GRADED):
            finish(work, run, episode, EpisodeState.DISCARDED, reason)


async def _episodes(work: Work, group: Group) -> list[Episode]:
    query = select(Episode).where(Episode.group_id == group.id).order_by(Episode.id).with_for_update()
    return list((await work.session.scalars(query)).all())


def _required(value: T | None) -> T:
    if value is None:
        raise ValueError("a graded episode has a reward and policy versions")
    return value
