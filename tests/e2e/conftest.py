"""One whole stack for all end-to-end tests, with an OTLP receiver that sees its traces."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sandpiper.cli.client import SandpiperClient
from sandpiper.demo.presets import PRESETS
from tests.e2e.otlp import Receiver, receiver
from tests.stack import RunningStack, start_stack

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


@pytest.fixture(scope="session")
def trained() -> Iterator[Trained]:
    """Submit over HTTP, train three steps."""
    data_dir = Path(tempfile.mkdtemp(prefix="sandpiper-e2e-"))
    try:
        with receiver() as traces:
            env = PRESETS["tiny"].env | {
                "OTEL_EXPORTER_OTLP_ENDPOINT": traces.endpoint,
                "OTEL_BSP_SCHEDULE_DELAY": "500",
            }
            stack = start_stack(data_dir, engine="torch", env=env)
            try:
                with SandpiperClient(stack.api_url) as client:
                    task_set = client.submit_task_set(ROOT / "examples" / "tasks" / "tiny")
                    created = client.create_run(tiny_document(task_set["id"]))
                    run = client.wait_run(created["id"], timeout_s=240)
                    yield Trained(client, stack, traces, run)
            finally:
                stack.stop()
    finally:
        shutil.rmtree(data_dir, ignore_errors=True)
