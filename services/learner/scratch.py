"""Local files of this process: what a killed process left behind is removed, what a live one uses is not.

Invariant: a folder under `root` belongs to the process that holds the lock on its `.lock`; unlocked folders
are garbage.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class Scratch:
    """A folder of this process's own under `root`."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.swept = sweep(root)
        self._folder = Path(tempfile.mkdtemp(prefix="learner-", dir=root))
        self._lock = (self._folder / ".lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @contextmanager
    def folder(self, name: str) -> Iterator[Path]:
        """A fresh folder, removed at the end."""
        path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._folder))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def base(self, run_id: str) -> Path:
        """Where the base policy of a run is kept while the run is loaded."""
        return self._folder / f"base-{run_id}"

    def drop_base(self, run_id: str) -> None:
        """Remove it."""
        shutil.rmtree(self.base(run_id), ignore_errors=True)

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._lock.close()


def sweep(root: Path) -> int:
    """Remove the folders of processes that are gone; returns how many."""
    gone = 0
    for folder in root.glob("learner-*"):
        try:
            with (folder / ".lock").open("r+") as lock:
                if _try_lock(lock):
                    shutil.rmtree(folder, ignore_errors=True)
                    gone += 1
        except FileNotFoundError:  # being made or removed right now
            continue
    return gone


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
