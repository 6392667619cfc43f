"""Tasks by blob: fetched, validated and kept in a small cache."""

from __future__ import annotations

from collections import OrderedDict

from sandpiper.store.errors import CorruptObject, MissingObject
from sandpiper.store.objects import ObjectStore
from sandpiper.tasks.model import Task
from sandpiper.tasks.plan import expected_tests
from sandpiper.v1.common_pb2 import Blob
from services.reward_grader.evidence import NoVerdict


class Tasks:
    """Reads tasks from the object store."""

    def __init__(self, objects: ObjectStore, size: int) -> None:
        self._objects, self._size = objects, size
        self._kept: OrderedDict[str, Task] = OrderedDict()

    async def get(self, blob: Blob) -> Task:
        """The task in `blob`.

        Raises:
            NoVerdict: it is not there, not what its digest says, or not a task that can be graded.
            StoreUnavailable: try again later.
        """
        key = f"{blob.uri} {blob.sha256}"
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        task = await self._read(blob)
        self._kept[key] = task
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return task

    async def _read(self, blob: Blob) -> Task:
        try:
            task = Task.model_validate_json(await self._objects.get(blob))
            expected_tests(task.hidden)
        except (MissingObject, CorruptObject) as error:
            raise NoVerdict("store", type(error).__name__, str(error)) from None
        except ValueError as error:
            raise NoVerdict("grading", "bad_task", str(error)) from None
        return task
