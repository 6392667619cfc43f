"""Takes a submitted task set into Postgres: one row a task, each task also an object of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import zstandard

from sandpiper.bus.errors import Reject
from sandpiper.store.blobs import blob_to_json
from sandpiper.store.db.models import Json, TaskRow, TaskSet
from sandpiper.store.objects import ObjectStore
from sandpiper.tasks.model import Task
from sandpiper.v1.tasks_pb2 import TaskSetSubmitted

from .taskspec import TaskSpec
from .work import Work

UPLOADS_AT_ONCE = 16


async def load(objects: ObjectStore, message: TaskSetSubmitted) -> list[tuple[Task, Json]]:
    """The tasks of a submission, each with the blob of its own object. No transaction is open meanwhile."""
    data = await objects.get(message.tasks)
    tasks = list(_parse(data))
    if len(tasks) != message.task_count:
        raise Reject(
            "handler_error", f"{message.task_set_id}: {len(tasks)} tasks, {message.task_count} announced"
        )
    slots = asyncio.Semaphore(UPLOADS_AT_ONCE)

    async def store(task: Task) -> Json:
        async with slots:
            return blob_to_json(
                await objects.put_by_digest("tasks", task.model_dump_json().encode(), ".json")
            )

    return list(zip(tasks, await asyncio.gather(*map(store, tasks)), strict=True))


def _parse(data: bytes) -> Iterator[Task]:
    try:
        lines = zstandard.ZstdDecompressor().decompressobj().decompress(data).splitlines()
        for line in lines:
            yield Task.model_validate_json(line)
    except (zstandard.ZstdError, ValueError) as error:
        raise Reject("unparseable", str(error)[:1000]) from error


async def record(work: Work, message: TaskSetSubmitted, tasks: list[tuple[Task, Json]]) -> None:
    """Insert the set; a set that is there already stays as it is."""
    if await work.session.get(TaskSet, message.task_set_id) is not None:
        return
    work.session.add(
        TaskSet(
            id=message.task_set_id,
            name=message.name,
            version=message.version,
            tasks_blob=blob_to_json(message.tasks),
            task_count=message.task_count,
            submitted_by=message.submitted_by,
            created_at=work.now,
        )
    )
    await work.session.flush()
    work.session.add_all(
        TaskRow(
            task_set_id=message.task_set_id,
            position=position,
            id=task.id,
            family=task.family,
            split=task.split,
            language=task.language,
            blob=blob,
            spec=TaskSpec.of(task).to_json(),
        )
        for position, (task, blob) in enumerate(tasks)
    )
