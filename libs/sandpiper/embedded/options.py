"""What a person can choose about the embedded stack."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

EngineKind = Literal["auto", "vllm", "torch"]
SERVICES = ("api", "rollout-orchestrator", "inference", "sandbox-executor", "reward-grader", "learner")
"""In the order of their start."""


class StackOptions(BaseModel):
    """Options of `sandpiper up`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    data_dir: Path
    """Everything the stack keeps or writes lies here (temporary files: a folder of its own under /tmp)."""
    replicas: dict[str, int] = Field(default_factory=lambda: dict.fromkeys(SERVICES, 1))
    """Processes per service; a service left out or 0 is not started."""
    engine: EngineKind = "auto"
    """Inference engine."""
    api_host: str = "127.0.0.1"
    api_port: int = Field(8080, ge=0, le=65535)
    """0: any free port, as with the other ports."""
    broker_port: int = Field(0, ge=0, le=65535)
    postgres_port: int = Field(0, ge=0, le=65535)
    objects_port: int = Field(0, ge=0, le=65535)
    env: dict[str, str] = Field(default_factory=dict)
    """More environment for every service (`SANDPIPER_*`, `OTEL_*`, …)."""
    service_env: dict[str, dict[str, str]] = Field(default_factory=dict)
    """More environment for one service."""
    ready_within_s: float = Field(180.0, gt=0)
    """A service that is not ready by then is started anew; at the first start the stack gives up."""
    grace_s: float = Field(10.0, ge=0)
    """How long services may drain at the end."""
    log_max_bytes: int = Field(20_000_000, ge=1000)
    """A log larger than this becomes `<name>.log.1` (one is kept)."""
