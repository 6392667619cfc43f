"""What end-to-end and chaos tests share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandpiper.cli.client import SandpiperClient
from tests.e2e.otlp import Receiver
from tests.stack import RunningStack

ROOT = Path(__file__).resolve().parents[2]
STEPS = 3


@dataclass
class Trained:
    """A finished run of the tiny policy."""

    client: SandpiperClient
    stack: RunningStack
    traces: Receiver
    run: dict[str, Any]


def tiny_document(task_set: str, steps: int = STEPS, **changes: Any) -> dict[str, Any]:
    """A small run of the tiny policy: 4 groups of 4 a step."""
    return {
        "name": "e2e",
        "policy": {"kind": "tiny", "seed": 1},
        "tasks": {"task_set": task_set, "split": "train"},
        "algorithm": {
            "group_size": 4,
            "groups_per_step": 4,
            "learning_rate": 3e-3,
            "dtype": "fp32",
            "filter_zero_variance": False,
        },
        "budget": {"steps": steps},
        "limits": {"max_running": 32},
        **changes,
    }
