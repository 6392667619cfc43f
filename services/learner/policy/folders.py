"""Model folders on local disk: built once, atomically, and checked before they are used again.

Invariants: a folder under its final name is complete; its `sandpiper.json`, written before the rename, holds
the size and SHA-256 of every other file; a folder that fails the check is rebuilt, never used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

SEAL = "sandpiper.json"


def build_once(target: Path, build: Callable[[Path], None]) -> Path:
    """`target`, built by `build(folder)` unless a sealed and intact one is there. Safe between processes."""
    if is_intact(target):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        scratch.chmod(0o755)
        build(scratch)
        seal(scratch)
        _put_in_place(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def seal(folder: Path) -> None:
    """Record size and digest of every file and push all of it to the disk."""
    files = {p.name: [p.stat().st_size, file_sha256(p)] for p in sorted(folder.iterdir()) if p.is_file()}
    (folder / SEAL).write_text(json.dumps({"files": files}, indent=1))
    for path in folder.iterdir():
        path.chmod(0o644)  # safetensors writes 0600
        _fsync(path)
    _fsync(folder)


def is_intact(folder: Path) -> bool:
    """True when every sealed file is there with the size and digest that was recorded."""
    try:
        files: dict[str, tuple[int, str]] = json.loads((folder / SEAL).read_text())["files"]
    except (OSError, ValueError, KeyError):
        return False
    paths = {name: folder / name for name in files}
    return all(p.is_file() and p.stat().st_size == files[n][0] for n, p in paths.items()) and all(
        file_sha256(p) == files[n][1] for n, p in paths.items()
    )


def file_sha256(path: Path) -> str:
    """Lower-case hex digest of a file of any size."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _put_in_place(scratch: Path, target: Path) -> None:
    try:
        scratch.rename(target)
    except OSError:
        if is_intact(target):  # another process was faster
            return
        broken = Path(tempfile.mkdtemp(prefix=f".{target.name}-broken-", dir=target.parent))
        target.rename(broken / "old")
        scratch.rename(target)
        shutil.rmtree(broken, ignore_errors=True)


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
