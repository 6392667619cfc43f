"""Native JSONL: one `Task` a line, read as a stream. Errors name line and field; blank lines are skipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from pydantic import ValidationError

from sandpiper.tasks.model import Task
from sandpiper.tasks.problems import MAX_PROBLEMS, Problem, TaskSetError, from_validation, raise_if
from sandpiper.tasks.taskset import TaskSetChecker

MAX_LINE_BYTES = 8 * 1024 * 1024


def parse_line(line: bytes, number: int, *, file: str = "") -> Task:
    """The task on one line. Raises `TaskSetError`."""
    if len(line) > MAX_LINE_BYTES:
        raise TaskSetError([Problem(f"longer than {MAX_LINE_BYTES} bytes", file, number)])
    try:
        return Task.model_validate_json(line)
    except ValidationError as error:
        raise TaskSetError(from_validation(error, file=file, line=number)) from None


def read_jsonl(stream: BinaryIO, *, file: str = "") -> Iterator[Task]:
    """Tasks of `stream` one by one; at the end (or after 100 problems) raises `TaskSetError` if any was bad.

    A consumer must therefore keep nothing until the iteration has ended.
    """
    problems: list[Problem] = []
    checker = TaskSetChecker()
    for number, line in _lines(stream):
        if not line.strip():
            continue
        try:
            task = parse_line(line, number, file=file)
        except TaskSetError as error:
            problems += error.problems
        else:
            found = checker.check(task, file=file, line=number)
            problems += [found] if found else []
            yield task
        if len(problems) >= MAX_PROBLEMS:
            break
    if not problems and not checker.count:
        problems.append(Problem("no task", file))
    raise_if(problems)


def dump_line(task: Task) -> bytes:
    """One line of JSONL, with its line end. Deterministic: equal tasks give equal bytes."""
    return task.model_dump_json().encode() + b"\n"


def dump_jsonl(tasks: Iterable[Task]) -> bytes:
    """All `tasks` as JSONL."""
    return b"".join(map(dump_line, tasks))


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Numbered lines, never holding more than one line limit; an over-long one is cut just past it."""
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        yield number, line
        while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            line = stream.readline(MAX_LINE_BYTES + 1)  # the rest of an over-long line is dropped
            if not line:
                return
