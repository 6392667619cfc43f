"""Facts about a whole task set: its header, and what must hold between its tasks."""

from __future__ import annotations

from pydantic import Field, field_validator

from sandpiper.tasks.model import SLUG, Strict, Task
from sandpiper.tasks.problems import Problem


class TaskSetInfo(Strict):
    """The header of a task set: `taskset.yaml` of the folder form."""

    name: str
    version: str = "1"
    description: str = Field("", max_length=10_000)

    @field_validator("name", "version")
    @classmethod
    def _slug(cls, value: str) -> str:
        if not SLUG.fullmatch(value):
            raise ValueError(f"{value!r}: use lower-case letters, digits, '.', '_' and '-'")
        return value


class TaskSetChecker:
    """Checks tasks one after another, holding only ids and families, so that a stream can be any length."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._splits: dict[str, tuple[str, str]] = {}

    def check(self, task: Task, *, file: str = "", line: int | None = None) -> Problem | None:
        """The problem of `task` with those before it: an id twice, or a family in both splits."""
        place = f"line {line}" if line is not None else file
        first = self._ids.setdefault(task.id, place)
        if first is not place:
            return Problem(f"{task.id!r} is already at {first or 'an earlier task'}", file, line, "id")
        split, other = self._splits.setdefault(task.family, (task.split, task.id))
        if split != task.split:
            reason = f"family {task.family!r} is {split!r} in task {other!r}: a split never cuts a family"
            return Problem(reason, file, line, "split")
        return None

    @property
    def count(self) -> int:
        """Tasks seen so far."""
        return len(self._ids)
