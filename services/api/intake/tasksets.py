"""An upload becomes a validated, normalised task set, or a 422 problem that names every bad place.

Blocking: call it in a thread. Nothing is stored here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import zstandard
from pydantic import ValidationError

from sandpiper.tasks.archive import ArchiveLimits, read_archive
from sandpiper.tasks.jsonl import dump_line, read_jsonl
from sandpiper.tasks.model import Task
from sandpiper.tasks.problems import Problem, TaskSetError, from_validation
from sandpiper.tasks.taskset import TaskSetInfo
from services.api.problems import FieldError, ProblemError, invalid
from services.api.settings import UploadSettings

JSONL_TYPES = ("application/x-ndjson", "application/jsonl", "application/jsonlines")
ARCHIVE_TYPES = ("application/zstd", "application/x-zstd", "application/x-tar+zstd")


@dataclass(frozen=True)
class TaskSetUpload:
    """A task set that is fit to be stored."""

    name: str
    version: str
    task_count: int
    data: bytes
    """JSONL, zstd: one normalised task a line. Equal tasks give equal bytes."""


def parse_upload(
    file: BinaryIO, media_type: str, name: str | None, version: str | None, settings: UploadSettings
) -> TaskSetUpload:
    """Read an upload of either form. `name` and `version` overrule the archive's `taskset.yaml`."""
    try:
        info, tasks = _read(file, media_type, name, version, settings)
        data, count = _normalise(tasks, settings)
    except TaskSetError as error:
        raise _refusal(error) from None
    except RecursionError:
        raise invalid("the upload nests too deeply") from None
    return TaskSetUpload(info.name, info.version, count, data)


def _read(
    file: BinaryIO, media_type: str, name: str | None, version: str | None, settings: UploadSettings
) -> tuple[TaskSetInfo, Iterator[Task]]:
    given = {key: value for key, value in (("name", name), ("version", version)) if value is not None}
    if media_type in JSONL_TYPES:
        if name is None:
            missing = FieldError(message="required for a JSONL upload", field="query.name")
            raise invalid("query parameter `name` is required for a JSONL upload", [missing])
        return _info(given), read_jsonl(file)
    limits = ArchiveLimits(
        total_bytes=settings.max_expanded_bytes,
        file_bytes=settings.max_file_bytes,
        files=settings.max_entries,
    )
    info, tasks = read_archive(file, limits)
    return _info({**info.model_dump(), **given}), iter(tasks)


def _info(fields: dict[str, str]) -> TaskSetInfo:
    try:
        return TaskSetInfo.model_validate(fields)
    except ValidationError as error:
        raise TaskSetError(from_validation(error)) from None


def _normalise(tasks: Iterator[Task], settings: UploadSettings) -> tuple[bytes, int]:
    compressor = zstandard.ZstdCompressor(level=6).compressobj()
    parts: list[bytes] = []
    count = size = 0
    problems: list[Problem] = []
    for task in tasks:
        count += 1
        line = dump_line(task)
        size += len(line)
        if count > settings.max_tasks:
            raise TaskSetError([Problem(f"more than {settings.max_tasks} tasks")])
        if size > settings.max_expanded_bytes:
            raise TaskSetError([Problem(f"more than {settings.max_expanded_bytes} bytes of tasks")])
        if b"\\u0000" in line and (field := _nul(task.model_dump(mode="json"))):
            problems.append(Problem(f"task {task.id!r} holds a NUL character", field=field))
        parts.append(compressor.compress(line))
    if problems:
        raise TaskSetError(problems)
    parts.append(compressor.flush())
    return b"".join(parts), count


def _nul(value: Any, path: str = "") -> str | None:
    """Path of the first string with a NUL, which the database cannot hold."""
    if isinstance(value, str):
        return path if "\0" in value else None
    if isinstance(value, dict):
        items: Any = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return None
    for key, item in items:
        inner = f"{path}.{key}" if path else str(key)
        if found := _nul(item, inner):
            return found
    return None


def _refusal(error: TaskSetError) -> ProblemError:
    errors = [
        FieldError(message=item.reason, field=item.field or None, line=item.line, file=item.file or None)
        for item in error.problems
    ]
    return ProblemError(422, "invalid-task-set", str(error).splitlines()[0], errors)
