"""The task model: what every importer produces and every service reads.

A task set is uploaded as JSONL (one `Task` a line) or as tar.zst of task folders (see
`sandpiper.tasks.folder`); both become this model, stored as JSONL in the object store.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")

Language = Literal["python", "javascript"]
Split = Literal["train", "heldout"]
HarnessName = Literal["single-file", "shell"]


def check_relative(path: str) -> str:
    """Refuse a path that is absolute, climbs out, is not normalised, or holds a NUL."""
    pure = PurePosixPath(path)
    if not path or pure.is_absolute() or ".." in pure.parts or "\0" in path or str(pure) != path:
        raise ValueError(f"{path!r} must be a normalised path inside the workspace")
    return path


WorkspacePath = Annotated[str, AfterValidator(check_relative)]
Files = dict[WorkspacePath, str]


class Strict(BaseModel):
    """Base of every model that a user writes: an unknown field is an error, not a guess."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class TaskLimits(Strict):
    """Limits of one episode of the task."""

    max_turns: int = Field(2, ge=1, le=64)
    """Generations per episode."""
    max_new_tokens: int = Field(160, ge=1, le=32768)
    """New tokens per turn."""
    context_tokens: int = Field(1024, ge=64, le=1_048_576)
    """Prompt plus everything generated, over the whole episode."""
    observation_chars: int = Field(400, ge=40, le=1_000_000)
    """Characters of one observation; the cut is marked in the text."""
    wall_s: float = Field(10.0, gt=0, le=3600)
    """Wall time of one execution."""
    cpu_s: float = Field(5.0, gt=0, le=3600)
    """CPU time of one execution, user and system."""
    memory_mb: int = Field(256, ge=16, le=65536)
    disk_mb: int = Field(32, ge=1, le=65536)
    pids: int = Field(64, ge=4, le=4096)
    output_kb: int = Field(64, ge=1, le=65536)
    """Kept of stdout and of stderr each; the rest is dropped and counted."""


class TestSpec(Strict):
    """A set of test files and how to run them."""

    __test__ = False

    runner: Literal["asserts", "pytest", "node"]
    """`asserts`: plain `test_*` functions; `pytest`: the same under pytest; `node`: `node --test`."""
    files: Files = Field(min_length=1)
    """Path -> content. They come from the task, never from the workspace."""


class RewardSpec(Strict):
    """How evidence becomes a reward in [-1, 1]. Defaults follow the design, section 5."""

    completed: float = Field(1.0, ge=-1, le=1)
    """Every hidden test passed."""
    syntax_error: float = Field(-0.5, ge=-1, le=1)
    assertion_failure: float = Field(-0.1, ge=-1, le=1)
    other_error: float = Field(-0.2, ge=-1, le=1)
    coverage_bonus: float = Field(0.2, ge=0, le=1)
    """Times the fraction of hidden tests passed; added to a failing reward."""

    @model_validator(mode="after")
    def _failure_stays_below_success(self) -> RewardSpec:
        best = max(self.syntax_error, self.assertion_failure, self.other_error) + self.coverage_bonus
        if best >= self.completed:
            raise ValueError("a failing solution could earn as much as `completed`; lower coverage_bonus")
        return self


class Task(Strict):
    """One task: instruction + workspace + visible tests + hidden tests + reward spec + limits."""

    id: str
    family: str
    """Tasks of one family share an idea; a split never cuts a family."""
    split: Split = "train"
    language: Language
    harness: HarnessName = "single-file"
    instruction: str = Field(min_length=1)
    workspace: Files
    """Files at the start of an episode, without the visible tests."""
    solution_path: WorkspacePath
    """The file that the `single-file` harness replaces."""
    artifacts: tuple[WorkspacePath, ...] = ()
    """What grading takes from the final workspace; empty: only `solution_path`."""
    visible: TestSpec
    hidden: TestSpec
    reference: Files = Field(min_length=1)
    """Files of a solution that passes; never shown to the policy."""
    reply_prefix: str = Field("", max_length=256)
    """Text that opens every reply of the policy, for example "```python\\n".

    It is part of the prompt: masked in training."""
    stop: tuple[str, ...] = ()
    """Strings that end a generation, besides the end-of-turn token."""
    limits: TaskLimits = TaskLimits()
    reward: RewardSpec = RewardSpec()

    @model_validator(mode="after")
    def _consistent(self) -> Task:
        for name, value in (("id", self.id), ("family", self.family)):
            if not SLUG.fullmatch(value):
                raise ValueError(f"{name} {value!r}: use lower-case letters, digits, '.', '_' and '-'")
        if self.solution_path not in self.reference:
            raise ValueError(f"reference has no {self.solution_path!r} (the solution_path)")
        overlap = set(self.hidden.files) & set(self.graded_paths())
        if overlap:
            raise ValueError(f"hidden tests and artifacts share {sorted(overlap)}")
        runners = {"node"} if self.language == "javascript" else {"asserts", "pytest"}
        for spec_name, spec in (("visible", self.visible), ("hidden", self.hidden)):
            if spec.runner not in runners:
                raise ValueError(f"{spec_name}.runner {spec.runner!r} does not run {self.language}")
        return self

    def graded_paths(self) -> tuple[str, ...]:
        """Paths that grading takes from the workspace."""
        return self.artifacts or (self.solution_path,)
