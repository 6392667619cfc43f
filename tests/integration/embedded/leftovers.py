"""What a stack could leave behind, looked for by everything that names it."""

from __future__ import annotations

import os
from pathlib import Path

from sandpiper.embedded import reaper
from sandpiper.embedded.state import StackState


def _mentions(pid: str, needles: list[str]) -> bool:
    for name in ("cmdline", "environ"):
        try:
            text = Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if any(needle in text for needle in needles):
            return True
    return False


def processes(state: StackState, data_dir: Path) -> list[str]:
    """Living processes that carry the stack's token or name its folders (this process aside)."""
    needles = [state.token, str(data_dir), str(state.temp_dir)]
    pids = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    return [
        f"{pid}: {Path(f'/proc/{pid}/comm').read_text().strip()}"
        for pid in pids
        if _mentions(pid, needles) and reaper.start_ticks(int(pid)) is not None
    ]


def shared_memory(data_dir: Path) -> str | None:
    """Id of the database's System V segment, while its server runs."""
    try:
        return (data_dir / "postgres" / "postmaster.pid").read_text().splitlines()[6].split()[1]
    except (OSError, IndexError):
        return None


def of(state: StackState, data_dir: Path, segment: str | None) -> list[str]:
    """Everything left of a stack that ended; empty when it cleaned up."""
    found = processes(state, data_dir)
    found += [f"temp folder {state.temp_dir}"] if state.temp_dir.exists() else []
    found += ["state file"] if (data_dir / "stack.json").exists() else []
    found += [line for line in Path("/proc/mounts").read_text().splitlines() if str(data_dir) in line]
    segments = [line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    found += [f"shared memory {segment}"] if segment in segments else []
    return found
