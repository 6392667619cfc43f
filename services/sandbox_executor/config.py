"""Settings of the sandbox executor. Environment prefix `SANDPIPER_`, nested with `__`."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

import sandpiper.runners
from sandpiper.settings import ServiceSettings
from services.sandbox_executor.backend.bubblewrap.settings import BubblewrapSettings


class Ceilings(BaseModel):
    """The most that a command may ask for; a command above is answered with `infra_error`, never run with
    less.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    wall_s: float = Field(3600, gt=0)
    cpu_s: float = Field(3600, gt=0)
    memory_bytes: int = Field(64 << 30, ge=1 << 20)
    pids: int = Field(4096, ge=1)
    disk_bytes: int = Field(64 << 30, ge=1 << 20)
    output_bytes: int = Field(64 << 20, ge=1)
    """Kept of stdout and of stderr each."""
    output_factor: int = Field(64, ge=1)
    """A program that writes so many times its kept output, and 4 MiB at least, is ended."""
    max_files: int = Field(20_000, ge=16)
    """Inodes of a workspace."""


class ExecutorSettings(ServiceSettings):
    """Shared settings plus these."""

    executor_id: str | None = None
    """Unset: made from the host name and a random part."""
    slots: int = Field(2 * (os.cpu_count() or 1), ge=1)
    """Commands at once."""
    labels: tuple[str, ...] = ("compute", "io")
    """Classes of work that suit this node; reported in heartbeats."""
    heartbeat_s: float = Field(1.0, gt=0)
    lease_s: float = Field(600.0, gt=0)
    """A sandbox that no command has used for so long is destroyed; its snapshots live on."""
    max_sandboxes: int = Field(128, ge=1)
    """More than so many live ones: the least recently used idle one goes."""
    reap_every_s: float = Field(60.0, gt=0)
    """Between two looks for leftovers of dead executors."""
    cache_bytes: int = Field(64 << 20, ge=0)
    """Snapshots kept in memory, so that a restore need not fetch them."""
    ceilings: Ceilings = Ceilings()
    bubblewrap: BubblewrapSettings = BubblewrapSettings()
    runners: Path = Path(sandpiper.runners.__file__ or "").parent
    """Folder that every sandbox sees at /opt/sandpiper/runners."""
