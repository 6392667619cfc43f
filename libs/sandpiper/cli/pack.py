"""Packs a folder of tasks as tar.zst for an upload: sorted, without times and owners, so that the same
folder gives the same bytes."""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from sandpiper.cli.errors import BadInput

SKIPPED = ("__pycache__", ".git", ".DS_Store")
JSONL = ("application/x-ndjson", (".jsonl", ".ndjson"))
ARCHIVE = ("application/zstd", (".tar.zst", ".tzst"))


@contextmanager
def open_upload(path: Path) -> Iterator[tuple[BinaryIO, str]]:
    """An open file with the upload for `path`, and its media type: a folder, `.jsonl` or `.tar.zst`."""
    if path.is_dir():
        with tempfile.TemporaryFile(prefix="sandpiper-pack-") as made:
            file = cast(BinaryIO, made)
            pack(path, file)
            yield file, ARCHIVE[0]
        return
    for media_type, endings in (JSONL, ARCHIVE):
        if path.name.endswith(endings):
            if not path.is_file():
                raise BadInput(f"there is no file {path}")
            with path.open("rb") as found:
                yield found, media_type
            return
    raise BadInput(f"{path}: give a folder with taskset.yaml, a .jsonl file or a .tar.zst file")


def pack(folder: Path, out: BinaryIO) -> None:
    """Write `folder` to `out`. Links are refused: an upload holds files only."""
    if not (folder / "taskset.yaml").is_file():
        raise BadInput(f"{folder} has no taskset.yaml (name, version, description)")
    with (
        zstandard.ZstdCompressor(level=6).stream_writer(out, closefd=False) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(folder.rglob("*")):
            if any(part in SKIPPED for part in path.relative_to(folder).parts) or path.is_dir():
                continue
            if path.is_symlink() or not path.is_file():
                raise BadInput(f"{path}: only regular files can be uploaded (no links)")
            _add(archive, path.relative_to(folder).as_posix(), path.read_bytes())
    out.seek(0)


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o644
    archive.addfile(info, io.BytesIO(data))
