"""The part of a task that the orchestrator may see: no hidden tests, no reference.

Kept as JSON in `tasks.spec`; everything that reaches a prompt comes from here, so a hidden test
cannot leak into one.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from sandpiper.tasks.model import Files, HarnessName, Language, Task, TaskLimits, TestSpec


class TaskSpec(BaseModel):
    """See the module's docstring; fields as in `sandpiper.tasks.model.Task`."""

    model_config = ConfigDict(frozen=True)

    id: str
    language: Language
    harness: HarnessName
    instruction: str
    workspace: Files
    solution_path: str
    visible: TestSpec
    reply_prefix: str
    stop: tuple[str, ...]
    limits: TaskLimits

    @classmethod
    def of(cls, task: Task) -> TaskSpec:
        """Leave out what the policy must never see."""
        return cls.model_validate({name: getattr(task, name) for name in cls.model_fields})

    def to_json(self) -> dict[str, Any]:
        """For the database."""
        return self.model_dump(mode="json")
