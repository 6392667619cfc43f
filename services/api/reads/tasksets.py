"""Queries about task sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from sandpiper.runs import TaskSelection
from sandpiper.store.db.models import TaskRow, TaskSet
from services.api.problems import not_found

NEWEST = (TaskSet.created_at.desc(), TaskSet.id.desc())


async def resolve(session: AsyncSession, reference: str) -> TaskSet:
    """The task set of an id, `name` or `name@version`. 404 problem when there is none."""
    row = await session.get(TaskSet, reference)
    if row is None:
        name, _, version = reference.partition("@")
        row = await find(session, name, version or None)
    if row is None:
        raise not_found("task set", reference)
    return row


async def find(session: AsyncSession, name: str, version: str | None) -> TaskSet | None:
    """The newest task set of that name (and version)."""
    query = select(TaskSet).where(TaskSet.name == name).order_by(*NEWEST).limit(1)
    if version is not None:
        query = query.where(TaskSet.version == version)
    return await session.scalar(query)


async def count_by(
    session: AsyncSession, task_set_id: str, column: InstrumentedAttribute[str]
) -> dict[str, int]:
    """How many tasks have each value of `column`."""
    query = select(column, func.count()).where(TaskRow.task_set_id == task_set_id).group_by(column)
    rows: Sequence[Any] = (await session.execute(query.order_by(column))).all()
    return dict(rows)


async def selection_size(session: AsyncSession, task_set_id: str, selection: TaskSelection) -> int:
    """How many tasks of the set a run document selects."""
    query = select(func.count()).select_from(TaskRow).where(TaskRow.task_set_id == task_set_id)
    if selection.split is not None:
        query = query.where(TaskRow.split == selection.split)
    if selection.ids:
        query = query.where(TaskRow.id.in_(selection.ids))
    found = await session.scalar(query) or 0
    return min(found, selection.limit or found)


async def unknown_ids(session: AsyncSession, task_set_id: str, ids: Sequence[str]) -> list[str]:
    """Those of `ids` that the set does not have."""
    query = select(TaskRow.id).where(TaskRow.task_set_id == task_set_id, TaskRow.id.in_(ids))
    known = set((await session.scalars(query)).all())
    return [ident for ident in ids if ident not in known]
