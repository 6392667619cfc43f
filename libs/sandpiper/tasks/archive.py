"""A task set as tar.zst of its folder form, read without trusting it.

Invariants: nothing is ever written to disk; only regular files are taken (a link, device or odd path is a
problem, not a guess); memory is bounded by `ArchiveLimits` whatever the archive claims to hold.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO, cast

import zstandard

from sandpiper.tasks.folder import TASKSET_FILE, files_of_task, header_of, task_set_from_files
from sandpiper.tasks.model import Task, check_relative
from sandpiper.tasks.problems import TaskSetError, problem
from sandpiper.tasks.taskset import TaskSetInfo

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class ArchiveLimits:
    """What an archive may hold, unpacked."""

    total_bytes: int = 256 * 1024 * 1024
    file_bytes: int = 8 * 1024 * 1024
    files: int = 100_000
    window_bytes: int = 128 * 1024 * 1024
    """zstd window; a frame that asks for more is refused."""


def read_archive(stream: BinaryIO, limits: ArchiveLimits = ArchiveLimits()) -> tuple[TaskSetInfo, list[Task]]:
    """The task set in a tar.zst stream. The folder may be the archive's top or its one top folder.

    Raises:
        TaskSetError: what is wrong with the archive or with tasks in it.
    """
    return task_set_from_files(_without_top(read_files(stream, limits)))


def read_files(stream: BinaryIO, limits: ArchiveLimits = ArchiveLimits()) -> dict[str, bytes]:
    """Regular files of a tar.zst stream as path -> bytes."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=limits.window_bytes)
    files: dict[str, bytes] = {}
    try:
        with decompressor.stream_reader(stream, read_across_frames=True, closefd=False) as raw:
            bounded = cast(BinaryIO, _Bounded(raw, limits.total_bytes))
            with tarfile.open(fileobj=bounded, mode="r|") as archive:
                for member in archive:
                    _take(archive, member, files, limits)
    except zstandard.ZstdError as error:
        raise problem(f"not a zstd archive: {error}") from None
    except TaskSetError:
        raise
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise problem(f"not a tar archive: {error}") from None
    return files


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """A deterministic tar.zst of `files` (sorted, no times, no owners)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(files):
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(files[path]), 0o644
            archive.addfile(member, io.BytesIO(files[path]))
    return zstandard.ZstdCompressor(level=3).compress(buffer.getvalue())


def archive_task_set(info: TaskSetInfo, tasks: list[Task]) -> bytes:
    """A whole task set as tar.zst of its folder form."""
    files = {TASKSET_FILE: header_of(info)}
    for task in tasks:
        files |= {f"{task.id}/{path}": data for path, data in files_of_task(task).items()}
    return write_archive(files)


def _take(
    archive: tarfile.TarFile, member: tarfile.TarInfo, files: dict[str, bytes], limits: ArchiveLimits
) -> None:
    if member.isdir():
        return
    path = member.name.removeprefix("./")
    if not member.isreg():
        raise problem("only regular files are allowed (no links, no devices)", file=path)
    try:
        check_relative(path)
    except ValueError as error:
        raise problem(str(error), file=path) from None
    if "__pycache__" in PurePosixPath(path).parts:
        return
    if path in files:
        raise problem("twice in the archive", file=path)
    if member.size > limits.file_bytes:
        raise problem(f"larger than {limits.file_bytes} bytes", file=path)
    if len(files) >= limits.files:
        raise problem(f"more than {limits.files} files")
    body = archive.extractfile(member)
    files[path] = body.read() if body else b""


def _without_top(files: dict[str, bytes]) -> dict[str, bytes]:
    """Drop the one top folder where the archive holds `<set>/taskset.yaml`."""
    tops = {path.split("/", 1)[0] for path in files}
    if TASKSET_FILE in files or len(tops) != 1:
        return files
    top = f"{tops.pop()}/"
    return {path.removeprefix(top): data for path, data in files.items()}


class _Bounded:
    """A reader that refuses to give more than `limit` bytes (a bomb, or a header that lies)."""

    def __init__(self, raw: zstandard.ZstdDecompressionReader, limit: int) -> None:
        self._raw, self._left, self._limit = raw, limit, limit

    def read(self, size: int = -1) -> bytes:
        wanted = self._left + 1 if size < 0 else min(size, self._left + 1)
        data = self._raw.read(wanted)
        self._left -= len(data)
        if self._left < 0:
            raise problem(f"unpacks to more than {self._limit} bytes")
        return data
