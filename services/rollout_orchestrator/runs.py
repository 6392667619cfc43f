"""Runs: commands, published policies, training steps, and the end.

Invariants:
* a run is created once, however often its command arrives;
* an episode is trained in at most one step (`step_episodes` has one row per episode);
* a run that is over has no unfinished episode: what was in flight is discarded with a reason.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import structlog
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from sandpiper.runs import RunDocument
from sandpiper.store.blobs import blob_to_json
from sandpiper.store.db.models import (
    Episode,
    Group,
    PolicyVersion,
    Run,
    StepEpisode,
    TaskSet,
    TrainingStepRow,
)
from sandpiper.telemetry import metrics, tracing
from sandpiper.topics import RUN_COMMANDS
from sandpiper.v1 import run_pb2, training_pb2

from .admission import count_tasks, quarantined
from .events import finish
from .groups import ZERO_VARIANCE, discard_group
from .states import RUN_OVER, EpisodeState, GroupState, RunState
from .work import Work

log = structlog.get_logger(__name__)


async def lock_run(work: Work, run_id: str) -> Run | None:
    """The run's row, locked until the transaction ends."""
    return await work.session.get(Run, run_id, with_for_update=True, populate_existing=True)


async def create(work: Work, run_id: str, command: run_pb2.CreateRun) -> None:
    """Record a new run; it waits for version 0 of its policy. A repeated command changes nothing."""
    if await lock_run(work, run_id) is not None:
        return
    document = RunDocument.model_validate_json(command.document_json)
    task_set = await _task_set(work, document.tasks.task_set)
    if task_set is None:
        log.warning("run_without_task_set", run_id=run_id, task_set=document.tasks.task_set)
        return
    run = Run(
        id=run_id,
        name=document.name,
        mode=document.mode,
        state=RunState.WAITING.value,
        document=json.loads(document.model_dump_json()),
        task_set_id=task_set.id,
        policy_run_id=_policy_run(document, run_id),
        step=0,
        next_group=0,
        requested_by=command.requested_by,
        created_at=work.now,
        trace_parent=tracing.current_traceparent(),
    )
    work.session.add(run)
    await work.session.flush()
    if not await count_tasks(work, task_set.id, document.tasks):
        run.state, run.reason, run.finished_at = RunState.FAILED.value, "no task is selected", work.now
    elif document.mode == "eval":
        await _start_on_existing_policy(work, run, document)


def _policy_run(document: RunDocument, run_id: str) -> str:
    """Whose versions the run acts with. A training run publishes its own, whatever its base is."""
    if document.mode == "eval" and document.policy.kind == "run":
        return document.policy.run_id or run_id
    return run_id


async def _task_set(work: Work, name: str) -> TaskSet | None:
    return await work.session.get(TaskSet, name)


async def _start_on_existing_policy(work: Work, run: Run, document: RunDocument) -> None:
    if document.policy.kind != "run":
        return
    version = document.policy.version
    if version is None:
        query = select(func.max(PolicyVersion.version)).where(PolicyVersion.run_id == run.policy_run_id)
        version = (await work.session.scalars(query)).one()
    if version is None or await work.session.get(PolicyVersion, (run.policy_run_id, version)) is None:
        run.state, run.reason = RunState.FAILED.value, "the policy version does not exist"
        run.finished_at = work.now
        return
    _start(work, run, version)


def _start(work: Work, run: Run, version: int) -> None:
    run.policy_version = version
    run.state, run.started_at = RunState.RUNNING.value, work.now


async def policy_published(work: Work, message: training_pb2.PolicyPublished) -> None:
    """Record a version; waiting runs start on version 0, training goes on with the newest."""
    run = await lock_run(work, message.run_id)
    if run is None:
        log.warning("policy_of_unknown_run", run_id=message.run_id, version=message.version)
        return
    values = {
        "manifest": blob_to_json(message.manifest),
        "weights_sha256": message.weights_sha256,
        "step": message.step,
        "published_at": work.now,
    }
    statement = insert(PolicyVersion).values(run_id=run.id, version=message.version, **values)
    await work.session.execute(
        statement.on_conflict_do_update(index_elements=["run_id", "version"], set_=values)
    )
    if run.state == RunState.WAITING:
        _start(work, run, message.version)
    elif run.mode == "train" and message.version > (run.policy_version or 0):
        run.policy_version = message.version
    metrics.POLICY_VERSION.labels(role="orchestrator").set(run.policy_version or 0)
    await end_if_spent(work, run)


async def step_trained(work: Work, message: training_pb2.TrainingStep) -> None:
    """Record an optimizer step: its groups and episodes are trained, stale ones are discarded."""
    run = await lock_run(work, message.run_id)
    if run is None:
        return None
    if run.state in RUN_OVER:
        # The learner finished a step before it heard; its episodes were discarded with the run.
        log.info("step_of_finished_run", run_id=run.id, step=message.step)
        return None
    if message.HasField("failure"):
        failure = message.failure
        return await end(
            work, run, RunState.FAILED, f"{failure.boundary}: {failure.reason}: {failure.detail}"[:2000]
        )
    await _insert_step(work, message)
    await _mark_trained(work, run, message)
    for group in await _groups(work, list(message.discarded_group_ids)):
        if group.state == GroupState.SUBMITTED:
            discard_group(work, run, group, await _episodes_of(work, [group.id]), "stale")
    run.step = max(run.step, message.step)
    return await end_if_spent(work, run)


async def _insert_step(work: Work, message: training_pb2.TrainingStep) -> None:
    statement = insert(TrainingStepRow).values(
        run_id=message.run_id,
        step=message.step,
        policy_version=message.policy_version,
        metrics=dict(message.metrics),
        checkpoint=blob_to_json(message.checkpoint),
        started_at=message.started_at,
        seconds=message.seconds,
        recorded_at=work.now,
    )
    await work.session.execute(statement.on_conflict_do_nothing())


async def _mark_trained(work: Work, run: Run, message: training_pb2.TrainingStep) -> None:
    trained = set(message.episode_ids)
    for group in await _groups(work, list(message.group_ids)):
        if group.state == GroupState.SUBMITTED:
            group.state, group.trained_step = GroupState.TRAINED.value, message.step
    for episode in await _episodes_of(work, list(message.group_ids)):
        if episode.state != EpisodeState.GRADED:
            continue
        if episode.id not in trained:
            finish(work, run, episode, EpisodeState.DISCARDED, "stale")
            continue
        episode.trained_step = message.step
        work.session.add(StepEpisode(episode_id=episode.id, run_id=run.id, step=message.step))
        finish(work, run, episode, EpisodeState.TRAINED, None)


async def _groups(work: Work, ids: list[str]) -> list[Group]:
    query = select(Group).where(Group.id.in_(ids)).order_by(Group.id).with_for_update()
    return list((await work.session.scalars(query)).all())


async def _episodes_of(work: Work, group_ids: list[str]) -> list[Episode]:
    query = select(Episode).where(Episode.group_id.in_(group_ids)).order_by(Episode.id).with_for_update()
    return list((await work.session.scalars(query)).all())


async def end_if_spent(work: Work, run: Run) -> None:
    """End a run whose budget is spent or whose evaluation is complete."""
    if run.state not in (RunState.RUNNING, RunState.PAUSED):
        return
    document = RunDocument.model_validate(run.document)
    reached = await _bound_reached(work, run, document)
    if reached is None:
        own = _evaluated if document.mode == "eval" else _trained_out
        reached = await own(work, run, document)
    if reached is not None:
        await end(work, run, reached.state, reached.reason)


@dataclass(frozen=True)
class End:
    """How a run ends."""

    state: RunState
    reason: str | None = None


async def _bound_reached(work: Work, run: Run, document: RunDocument) -> End | None:
    """The bounds that training and evaluation share."""
    budget = document.budget
    if budget.wall_s is not None and run.started_at is not None and work.now - run.started_at > budget.wall_s:
        return End(RunState.SUCCEEDED, "wall budget spent")
    if budget.episodes is not None and await _nothing_open(work, run, document):
        return End(RunState.SUCCEEDED, "episode budget spent")
    return None


async def _trained_out(work: Work, run: Run, document: RunDocument) -> End | None:
    steps = document.budget.steps
    if run.step >= steps and (run.policy_version or 0) >= steps:
        return End(RunState.SUCCEEDED)
    poisoned = await quarantined(work, run)
    if poisoned and len(poisoned) >= await count_tasks(work, run.task_set_id, document.tasks):
        return End(RunState.FAILED, "every task is quarantined: each failed again and again")
    why = await _without_signal(work, run, document)
    return None if why is None else End(RunState.SUCCEEDED, why)


async def _without_signal(work: Work, run: Run, document: RunDocument) -> str | None:
    """Why there is nothing left to learn from, if so: filtered groups are refilled, else for ever."""
    bound = document.budget.zero_variance_groups or 8 * document.algorithm.groups_per_step
    closed = select(Group.id, Group.reason).where(Group.run_id == run.id, Group.closed_at.is_not(None))
    newest = (await work.session.execute(closed.order_by(Group.closed_at.desc()).limit(bound))).all()
    if len(newest) < bound or any(reason != ZERO_VARIANCE for _, reason in newest):
        return None
    ids = [group_id for group_id, _ in newest]
    rewards = select(func.avg(Episode.reward)).where(Episode.group_id.in_(ids))
    mean = (await work.session.scalars(rewards)).one()
    return (
        f"the rewards of the last {bound} groups were all equal (mean {mean:.2f}): nothing left to learn from"
    )


async def _nothing_open(work: Work, run: Run, document: RunDocument) -> bool:
    admitted = (await work.session.scalars(select(func.count()).where(Episode.run_id == run.id))).one()
    query = select(func.count()).where(
        Group.run_id == run.id, Group.state.in_([GroupState.OPEN, GroupState.SUBMITTED])
    )
    open_groups = (await work.session.scalars(query)).one()
    left = (document.budget.episodes or 0) - admitted
    size = document.algorithm.group_size if document.mode == "train" else document.samples_per_task
    return open_groups == 0 and left < size


async def _evaluated(work: Work, run: Run, document: RunDocument) -> End | None:
    total = await count_tasks(work, run.task_set_id, document.tasks)
    query = select(func.count()).where(
        Group.run_id == run.id, Group.state.in_([GroupState.FINISHED, GroupState.DISCARDED])
    )
    finished = (await work.session.scalars(query)).one()
    return End(RunState.SUCCEEDED) if finished >= total else None


async def end(work: Work, run: Run, state: RunState, reason: str | None) -> None:
    """Bring a run to a terminal state and discard what is in flight. A run that is over stays as it is."""
    if run.state in RUN_OVER:
        return
    run.state, run.reason, run.finished_at = state.value, reason, work.now
    log.info("run_over", run_id=run.id, state=state.value, reason=reason)
    label = f"run_{state.value}"
    open_states = [GroupState.OPEN.value, GroupState.SUBMITTED.value]
    query = select(Group).where(Group.run_id == run.id, Group.state.in_(open_states)).order_by(Group.id)
    for group in (await work.session.scalars(query.with_for_update())).all():
        discard_group(work, run, group, await _episodes_of(work, [group.id]), label)
    finish_command = run_pb2.RunCommand(
        run_id=run.id, finish=run_pb2.FinishRun(state=state.value, reason=reason or "")
    )
    work.owe(RUN_COMMANDS, run.id, finish_command)


async def command(work: Work, message: run_pb2.RunCommand) -> None:
    """create | pause | resume | cancel; `finish` is our own and means nothing here."""
    kind = message.WhichOneof("command")
    if kind == "create":
        return await create(work, message.run_id, message.create)
    run = await lock_run(work, message.run_id)
    if run is None or kind == "finish":
        return None
    if kind == "cancel":
        return await end(work, run, RunState.CANCELLED, message.cancel.reason or None)
    if kind == "pause" and run.state == RunState.RUNNING:
        run.state = RunState.PAUSED.value
    if kind == "resume" and run.state == RunState.PAUSED:
        run.state = RunState.RUNNING.value
    return None
