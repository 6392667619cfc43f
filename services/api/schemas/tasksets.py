"""Responses about task sets."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from sandpiper.store.db.models import TaskRow
from services.api.schemas.common import Json, View

SECRET = {"hidden", "reference"}
"""Fields of a task that this API never shows."""


class TaskSetView(View):
    """A task set."""

    id: str
    name: str
    version: str
    task_count: int
    submitted_by: str
    created_at: float
    """Unix seconds, like every time in this API."""


class TaskSetDetail(TaskSetView):
    """A task set and what is in it."""

    splits: dict[str, int] = Field(default_factory=dict)
    """Tasks per split."""
    languages: dict[str, int] = Field(default_factory=dict)
    families: dict[str, int] = Field(default_factory=dict)


class TaskView(View):
    """A task as the policy may see it: without hidden tests and reference."""

    id: str
    position: int
    """Order within the set."""
    family: str
    split: str
    language: str
    spec: Json

    @classmethod
    def of(cls, row: TaskRow) -> TaskView:
        """Drops what must stay hidden, whatever the row holds."""
        spec: dict[str, Any] = {name: value for name, value in row.spec.items() if name not in SECRET}
        fields = {"id": row.id, "position": row.position, "family": row.family}
        return cls(**fields, split=row.split, language=row.language, spec=spec)
