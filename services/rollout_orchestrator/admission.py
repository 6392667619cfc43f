"""Admission: which task next, and whether one more group may start.

Invariants:
* `submitted + trained + open groups ≤ (η + v + 1)·K` (AReaL's bound, in groups of G; K groups per step), so
  that a trajectory cannot wait until it is more than η versions old;
* all counts come from Postgres, never from memory: a restart cannot loosen the bound;
* the task order is a cursor that wraps, reshuffled each epoch by the run's seed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import structlog
from sqlalchemy import Select, func, select

from sandpiper.runs import RunDocument, TaskSelection
from sandpiper.store.db.models import Episode, Group, Run, TaskRow

from .groups import POISON, open_group
from .states import UNFINISHED, GroupState, RunState
from .work import Work

log = structlog.get_logger(__name__)

COUNTED = (GroupState.OPEN, GroupState.SUBMITTED, GroupState.TRAINED)


async def selected_tasks(work: Work, task_set_id: str, selection: TaskSelection) -> list[TaskRow]:
    """The tasks of a run, in the order of their set."""
    return list((await work.session.scalars(_selection(task_set_id, selection))).all())


async def count_tasks(work: Work, task_set_id: str, selection: TaskSelection) -> int:
    """How many `selected_tasks` are, without reading them."""
    chosen = _selection(task_set_id, selection).with_only_columns(TaskRow.id).subquery()
    return (await work.session.scalars(select(func.count()).select_from(chosen))).one()


def _selection(task_set_id: str, selection: TaskSelection) -> Select[TaskRow]:
    query = select(TaskRow).where(TaskRow.task_set_id == task_set_id).order_by(TaskRow.position)
    if selection.split is not None:
        query = query.where(TaskRow.split == selection.split)
    if selection.ids:
        query = query.where(TaskRow.id.in_(selection.ids))
    return query.limit(selection.limit)


def capacity(groups_per_step: int, max_staleness: int, version: int, counted: int) -> int:
    """Groups that may still be admitted: `(η + v + 1)·K − counted`, never below 0."""
    return max(0, (max_staleness + version + 1) * groups_per_step - counted)


def task_at(tasks: Sequence[TaskRow], cursor: int, seed: int) -> TaskRow:
    """The task of the `cursor`-th group: every epoch visits each task once, in its own order."""
    epoch, position = divmod(cursor, len(tasks))
    order = list(range(len(tasks)))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return tasks[order[position]]


async def admit(work: Work, run: Run) -> int:
    """Open as many groups as the bounds allow; returns how many. The caller holds the run's row lock."""
    if run.state != RunState.RUNNING or run.policy_version is None:
        return 0
    document = RunDocument.model_validate(run.document)
    if document.mode == "eval":
        return await _admit_evaluation(work, run, document)
    return await _admit_training(work, run, document)


async def _admit_training(work: Work, run: Run, document: RunDocument) -> int:
    algorithm = document.algorithm
    counted = await _count(work, Group, Group.run_id == run.id, Group.state.in_(COUNTED))
    room = capacity(algorithm.groups_per_step, algorithm.max_staleness, run.policy_version or 0, counted)
    room = min(room, await _room_in_flight(work, run, document, algorithm.group_size))
    if room <= 0:  # by far the most frequent answer: the tasks need not be read for it
        return 0
    tasks = await selected_tasks(work, run.task_set_id, document.tasks)
    poisoned = await quarantined(work, run)
    healthy = [task for task in tasks if task.id not in poisoned]
    if not healthy:  # the run is ended for it (runs.end_if_spent)
        return 0
    for _ in range(room):
        task = task_at(healthy, run.next_group, document.seed)
        await open_group(work, run, document, task, run.next_group)
        run.next_group += 1
        if run.next_group % len(healthy) == 0:
            log.info("task_cursor_wrapped", run_id=run.id, groups=run.next_group)
    return room


async def _admit_evaluation(work: Work, run: Run, document: RunDocument) -> int:
    left = await count_tasks(work, run.task_set_id, document.tasks) - run.next_group
    room = min(left, await _room_in_flight(work, run, document, document.samples_per_task))
    if room <= 0:
        return 0
    tasks = await selected_tasks(work, run.task_set_id, document.tasks)
    for _ in range(room):
        await open_group(work, run, document, tasks[run.next_group], run.next_group)
        run.next_group += 1
    return room


async def _room_in_flight(work: Work, run: Run, document: RunDocument, group_size: int) -> int:
    states = [state.value for state in UNFINISHED]
    running = await _count(work, Episode, Episode.run_id == run.id, Episode.state.in_(states))
    room = (document.limits.max_running - running) // group_size
    if room <= 0 and running == 0:
        room = 1  # a limit below one group would never admit anything: one group at a time is the least
    if document.budget.episodes is not None:
        admitted = await _count(work, Episode, Episode.run_id == run.id)
        room = min(room, (document.budget.episodes - admitted) // group_size)
    return max(room, 0)


async def quarantined(work: Work, run: Run) -> set[str]:
    """Ids of the run's tasks that failed again and again."""
    query = select(Group.task_id).where(Group.run_id == run.id, Group.reason == POISON)
    return set((await work.session.scalars(query)).all())


async def _count(work: Work, table: type[Group | Episode], *where: object) -> int:
    query = select(func.count()).select_from(table).where(*where)  # type: ignore[arg-type]
    return (await work.session.scalars(query)).one()
