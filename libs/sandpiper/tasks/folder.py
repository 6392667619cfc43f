"""The folder form of a task set, read from a folder or an archive and written back.

    taskset.yaml                      name, version, description
    <task-id>/task.yaml               family, split, language, harness, solution_path, visible_runner,
                                      hidden_runner, limits, reward, reply_prefix, stop, artifacts
    <task-id>/instruction.md
    <task-id>/workspace/...           <task-id>/solution/...
    <task-id>/tests/visible/...       <task-id>/tests/hidden/...

Files are UTF-8 text; line ends are kept. Everything works on a mapping path -> bytes, so that a folder and an
archive (`sandpiper.tasks.archive`) go through the same code. Every error names file and field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from sandpiper.strict_yaml import load_yaml
from sandpiper.tasks.languages import LANGUAGES
from sandpiper.tasks.model import Task
from sandpiper.tasks.problems import MAX_PROBLEMS, Problem, TaskSetError, from_validation, problem
from sandpiper.tasks.taskset import TaskSetChecker, TaskSetInfo

T = TypeVar("T")

TASKSET_FILE = "taskset.yaml"
TASK_FILE = "task.yaml"
INSTRUCTION_FILE = "instruction.md"
PARTS = {
    "workspace": "workspace/",
    "visible": "tests/visible/",
    "hidden": "tests/hidden/",
    "reference": "solution/",
}
IGNORED = (".DS_Store", "README.md")
COPIED = (
    "family",
    "split",
    "language",
    "harness",
    "solution_path",
    "reply_prefix",
    "stop",
    "artifacts",
    "limits",
    "reward",
)


def read_task_set(folder: Path) -> tuple[TaskSetInfo, list[Task]]:
    """The task set in `folder`; raises `TaskSetError` with every problem (up to 100)."""
    return task_set_from_files(_files_under(folder))


def read_task(folder: Path) -> Task:
    """The task in `folder`, whose name is the task's id."""
    return task_from_files(folder.name, _files_under(folder))


def write_task_set(info: TaskSetInfo, tasks: Iterable[Task], folder: Path) -> None:
    """Write `tasks` in the folder form; existing files are overwritten, others are left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TASKSET_FILE).write_bytes(header_of(info))
    for task in tasks:
        write_task(task, folder / task.id)


def write_task(task: Task, folder: Path) -> None:
    """Write one task; `folder` should be named by its id."""
    for path, data in files_of_task(task).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def header_of(info: TaskSetInfo) -> bytes:
    """The bytes of `taskset.yaml`."""
    return _dump(info.model_dump()).encode()


def files_of_task(task: Task) -> dict[str, bytes]:
    """The folder form of one task as path -> bytes."""
    meta = task.model_dump(mode="json", include=set(COPIED), exclude_defaults=True)
    meta["language"] = task.language
    meta |= {"visible_runner": task.visible.runner, "hidden_runner": task.hidden.runner}
    files = {TASK_FILE: _dump(meta).encode(), INSTRUCTION_FILE: task.instruction.encode()}
    parts = {"workspace": task.workspace, "visible": task.visible.files}
    parts |= {"hidden": task.hidden.files, "reference": task.reference}
    for part, contents in parts.items():
        files |= {PARTS[part] + path: text.encode() for path, text in contents.items()}
    return files


def task_set_from_files(files: Mapping[str, bytes]) -> tuple[TaskSetInfo, list[Task]]:
    """A whole set from path -> bytes. Raises `TaskSetError`."""
    problems: list[Problem] = []
    info = _collect(problems, lambda: _info(files))
    tasks: list[Task] = []
    checker = TaskSetChecker()
    for name, parts in _by_task(files, problems).items():
        if len(problems) >= MAX_PROBLEMS:
            break
        task = _collect(problems, partial(task_from_files, name, parts, prefix=f"{name}/"))
        if task is None:
            continue
        tasks.append(task)
        found = checker.check(task, file=f"{name}/{TASK_FILE}")
        problems += [found] if found else []
    if not problems and not tasks:
        problems.append(Problem(f"no task: expected <task-id>/{TASK_FILE}"))
    if problems or info is None:
        raise TaskSetError(problems)
    return info, tasks


def task_from_files(task_id: str, files: Mapping[str, bytes], *, prefix: str = "") -> Task:
    """One task from path -> bytes relative to its folder. `prefix` names the folder in errors."""
    meta = _yaml(files, TASK_FILE, prefix)
    unknown = sorted(set(meta) - {*COPIED, "visible_runner", "hidden_runner"})
    if unknown:
        raise TaskSetError([Problem("unknown field", prefix + TASK_FILE, field=name) for name in unknown])
    _no_strays(files, prefix)
    language = LANGUAGES.get(str(meta.get("language", "")))
    if language is None:
        raise problem(f"must be one of {sorted(LANGUAGES)}", file=prefix + TASK_FILE, field="language")
    parts = {part: _texts(files, folder, prefix) for part, folder in PARTS.items()}
    data: dict[str, Any] = {key: meta[key] for key in COPIED if key in meta}
    data.setdefault("solution_path", language.solution_path)
    data |= {"id": task_id, "instruction": _text(files, INSTRUCTION_FILE, prefix)}
    data |= {"workspace": parts["workspace"], "reference": parts["reference"]}
    for name in ("visible", "hidden"):
        runner = meta.get(f"{name}_runner", language.runner)
        data[name] = {"runner": runner, "files": parts[name]}
    try:
        return Task.model_validate(data)
    except ValidationError as error:
        found = from_validation(error, file=prefix + TASK_FILE)
        raise TaskSetError([_relocate(item, prefix) for item in found]) from None


def _relocate(found: Problem, prefix: str) -> Problem:
    """Point at the folder or key that the user wrote instead of the model's field."""
    head, _, rest = found.field.partition(".")
    if head in ("visible", "hidden") and rest == "runner":
        return Problem(found.reason, found.file, field=f"{head}_runner")
    if head == "instruction":
        return Problem(found.reason, prefix + INSTRUCTION_FILE)
    if head in PARTS:
        name = rest.removeprefix("files").lstrip(".").removesuffix(".[key]")
        return Problem(found.reason, prefix + PARTS[head] + name)
    return found


def _by_task(files: Mapping[str, bytes], problems: list[Problem]) -> dict[str, dict[str, bytes]]:
    grouped: dict[str, dict[str, bytes]] = {}
    for path in sorted(files, key=lambda item: item.split("/")):
        name, _, rest = path.partition("/")
        if rest:
            grouped.setdefault(name, {})[rest] = files[path]
        elif name != TASKSET_FILE and name not in IGNORED:
            problems.append(Problem("unexpected file beside the task folders", path))
    return grouped


def _no_strays(files: Mapping[str, bytes], prefix: str) -> None:
    known = (TASK_FILE, INSTRUCTION_FILE, *IGNORED)
    strays = [p for p in files if p not in known and not p.startswith(tuple(PARTS.values()))]
    if strays:
        raise TaskSetError([Problem("unexpected file in a task folder", prefix + path) for path in strays])


def _info(files: Mapping[str, bytes]) -> TaskSetInfo:
    try:
        return TaskSetInfo.model_validate(_yaml(files, TASKSET_FILE, ""))
    except ValidationError as error:
        raise TaskSetError(from_validation(error, file=TASKSET_FILE)) from None


def _collect(problems: list[Problem], read: Callable[[], T]) -> T | None:
    try:
        return read()
    except TaskSetError as error:
        problems.extend(error.problems)
        return None


def _texts(files: Mapping[str, bytes], folder: str, prefix: str) -> dict[str, str]:
    return {p.removeprefix(folder): _text(files, p, prefix) for p in sorted(files) if p.startswith(folder)}


def _text(files: Mapping[str, bytes], path: str, prefix: str) -> str:
    if path not in files:
        raise problem("missing", file=prefix + path)
    try:
        return files[path].decode("utf-8")
    except UnicodeDecodeError as error:
        raise problem(f"not UTF-8 text (byte {error.start})", file=prefix + path) from None


def _yaml(files: Mapping[str, bytes], path: str, prefix: str) -> dict[str, Any]:
    text = _text(files, path, prefix)
    try:
        data = load_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else None
        reason = getattr(error, "problem", None) or "not valid YAML"
        raise problem(str(reason), file=prefix + path, line=line) from None
    except ValueError as error:  # a value that YAML reads and Python cannot hold
        raise problem(f"not valid YAML: {error}", file=prefix + path) from None
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise problem("must be a mapping of field: value", file=prefix + path)
    return data


def _files_under(folder: Path) -> dict[str, bytes]:
    """Every regular file under `folder`; caches and links are left out."""
    if not folder.is_dir():
        raise problem("no such folder", file=str(folder))
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts
    }


def _dump(data: dict[str, Any]) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
