"""`sandpiper tasks validate`: reads a task set, runs its checks in local sandboxes, says what fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from sandpiper.cli.errors import SHOWN, BadInput
from sandpiper.cli.pack import ARCHIVE, JSONL
from sandpiper.cli.render import clean, console, print_json
from sandpiper.tasks.archive import read_archive
from sandpiper.tasks.folder import read_task_set
from sandpiper.tasks.jsonl import read_jsonl
from sandpiper.tasks.local import LocalRunner
from sandpiper.tasks.model import Task
from sandpiper.tasks.problems import TaskSetError
from sandpiper.tasks.validate import TaskResult, failures, validate_tasks


def validate_path(path: Path, only: Sequence[str], jobs: int, as_json: bool) -> bool:
    """Print the result; True when every task holds. `only`: just these task ids."""
    tasks = read_tasks(path)
    if only:
        unknown = sorted(set(only) - {task.id for task in tasks})
        if unknown:
            raise BadInput(f"{path} has no task {', '.join(unknown)}")
        tasks = [task for task in tasks if task.id in only]
    results = _run(tasks, jobs)
    holds = all(result.ok for result in results)
    if as_json:
        print_json({"ok": holds, "tasks": [{**asdict(result), "ok": result.ok} for result in results]})
    else:
        _print(results)
    return holds


def read_tasks(path: Path) -> list[Task]:
    """Tasks of a folder, `.jsonl` or `.tar.zst`. Raises `BadInput` naming file, line and field."""
    try:
        if path.is_dir():
            return read_task_set(path)[1]
        if path.name.endswith(JSONL[1]):
            with path.open("rb") as file:
                return list(read_jsonl(file))
        if path.name.endswith(ARCHIVE[1]):
            with path.open("rb") as file:
                return read_archive(file)[1]
    except TaskSetError as error:
        lines = str(error).splitlines()
        more = [f"… and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        raise BadInput("\n  ".join([f"{path} is not a valid task set:", *lines[:SHOWN], *more])) from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None
    raise BadInput(f"{path}: give a folder with taskset.yaml, a .jsonl file or a .tar.zst file")


def _run(tasks: Sequence[Task], jobs: int) -> list[TaskResult]:
    try:
        runner = LocalRunner()
    except FileNotFoundError as error:
        raise BadInput(f"{error}; tasks are validated in its sandboxes") from None
    columns = (TextColumn("validating"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, transient=True, disable=not console().is_terminal) as bars:
        bar = bars.add_task("", total=len(tasks))

        def show(done: int, total: int, result: TaskResult) -> None:
            bars.update(bar, completed=done, description=result.task_id)

        return validate_tasks(tasks, runner, show, workers=jobs)


def _print(results: Sequence[TaskResult]) -> None:
    out = console()
    for line in failures(results):
        out.print(clean(line), style="red", markup=False, soft_wrap=True)
    good = sum(result.ok for result in results)
    checks = sum(len(result.checks) for result in results)
    out.print(f"{good} of {len(results)} tasks hold ({checks} checks)", markup=False)
