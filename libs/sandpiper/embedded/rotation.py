"""Bounded logs: copy and truncate, since the children hold their files open (in append mode)."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

EVERY_S = 5.0


def rotate(folder: Path, max_bytes: int) -> list[Path]:
    """Move each log above `max_bytes` to `<name>.log.1` (replacing it). Lines of that moment may be lost."""
    rotated = []
    for path in folder.glob("*.log"):
        if path.stat().st_size > max_bytes:
            shutil.copyfile(path, path.with_name(f"{path.name}.1"))
            os.truncate(path, 0)
            rotated.append(path)
    return rotated


async def rotate_forever(folder: Path, max_bytes: int) -> None:
    """Look every few seconds until cancelled."""
    while True:
        await asyncio.sleep(EVERY_S)
        await asyncio.to_thread(rotate, folder, max_bytes)
