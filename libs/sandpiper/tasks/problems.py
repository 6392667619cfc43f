"""What is wrong with a task set: file, line and field of every problem, as values and as one exception."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

MAX_PROBLEMS = 100
"""After so many problems reading stops; nobody reads the rest."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and where."""

    reason: str
    file: str = ""
    """Path inside the folder or archive; empty for a single JSONL stream."""
    line: int | None = None
    """1-based line of a JSONL file."""
    field: str = ""
    """Dotted path of the field, for example `limits.wall_s`."""

    def __str__(self) -> str:
        line = f"line {self.line}" if self.line is not None else ""
        place = [part for part in (self.file, line, self.field) if part]
        return ": ".join([*place, self.reason])


class TaskSetError(ValueError):
    """A task set that cannot be used; nothing of it was stored."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def problem(reason: str, *, file: str = "", line: int | None = None, field: str = "") -> TaskSetError:
    """An error with exactly one problem."""
    return TaskSetError([Problem(reason, file, line, field)])


def from_validation(
    error: ValidationError, *, file: str = "", line: int | None = None
) -> tuple[Problem, ...]:
    """The problems that pydantic found, each with its field."""

    def reason(message: str) -> str:
        return message.removeprefix("Value error, ")

    return tuple(
        Problem(reason(item["msg"]), file, line, ".".join(map(str, item["loc"])))
        for item in error.errors(include_url=False, include_input=False, include_context=False)
    )


def raise_if(problems: Iterable[Problem]) -> None:
    """Raise one `TaskSetError` where there is any problem."""
    found = tuple(problems)
    if found:
        raise TaskSetError(found)
