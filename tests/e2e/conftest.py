"""One whole stack for all end-to-end tests, with an OTLP receiver that sees its traces."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandpiper.cli.client import SandpiperClient
from sandpiper.demo.presets import PRESETS
from tests.e2e.otlp import receiver
from tests.e2e.support import ROOT, Trained, tiny_document
from tests.stack import start_stack


@pytest.fixture(scope="session")
def trained() -> Iterator[Trained]:
    """Submit over HTTP, train three steps."""
    data_dir = Path(tempfile.mkdtemp(prefix="sandpiper-e2e-"))
    try:
        with receiver() as traces:
            env = {
                "OTEL_EXPORTER_OTLP_ENDPOINT": traces.endpoint,
                "OTEL_BSP_SCHEDULE_DELAY": "500",
            }
            service_env = dict(PRESETS["tiny"].service_env)
            service_env["inference"] = service_env["inference"] | {"SANDPIPER_TORCH__DTYPE": "float32"}
            stack = start_stack(data_dir, engine="torch", env=env, service_env=service_env)
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
