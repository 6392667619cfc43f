"""Settings of the bubblewrap backend."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class BubblewrapSettings(BaseModel):
    """What a sandbox sees and how it is fenced."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bwrap: str = "bwrap"
    """The bubblewrap binary: a path, or a name on PATH."""
    python: str | None = None
    """Interpreter of the supervisor, below /usr; unset: the first of /usr/bin/python3 and
    /usr/local/bin/python3.
    """
    hidden: tuple[Path, ...] = (
        Path("/usr/src"),
        Path("/usr/games"),
        Path("/usr/local/bin"),
        Path("/usr/local/sbin"),
        Path("/usr/local/etc"),
        Path("/usr/local/share"),
        Path("/usr/local/src"),
        Path("/usr/share/doc"),
    )
    """Folders of the read-only system that a sandbox sees empty, except where they hold an interpreter."""
    read_only: dict[str, Path] = Field(default_factory=dict)
    """More read-only folders: path in the sandbox -> path here."""
    scratch_bytes: int = Field(16 << 20, ge=1 << 20)
    """Size of /tmp and of /dev/shm each, never more than the workspace."""
    uid_base: int = Field(60000, ge=1000)
    """First host uid of sandboxes where the executor is root."""
    uid_count: int = Field(2000, ge=1)
    cgroup: Literal["auto", "off", "require"] = "auto"
    """`auto`: control groups where they are writable, else rlimits; `require`: refuse to start without."""
    open_files: int = Field(1024, ge=16)
    create_timeout_s: float = Field(20.0, gt=0)
    """From start to a supervisor that answers."""
    answer_timeout_s: float = Field(30.0, gt=0)
    """For writing, restoring and snapshots, and beyond the wall time of a run."""
