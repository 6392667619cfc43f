"""The service itself, with the orchestrator, broker, Postgres and S3 as processes."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandpiper.cli.client import SandpiperClient
from sandpiper.cli.errors import ApiError, ClientError
from sandpiper.cli.events import Event
from sandpiper.embedded.options import SERVICES
from sandpiper.tasks.folder import write_task_set
from sandpiper.tasks.model import Task
from sandpiper.tasks.taskset import TaskSetInfo
from tests.stack import MakeStack, RunningStack, start_stack
from tests.unit.api.api_fakes import jsonl, task_data

ALONE = dict.fromkeys(SERVICES, 0) | {"api": 1, "rollout-orchestrator": 1}
DOCUMENT = {"name": "mine", "policy": {"kind": "tiny"}, "tasks": {"task_set": "adding"}}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    running = start_stack(tmp_path_factory.mktemp("api") / "data", replicas=ALONE)
    yield running
    running.stop()


@pytest.fixture
def client(stack: RunningStack) -> Iterator[SandpiperClient]:
    with SandpiperClient(stack.api_url) as made:
        yield made


@pytest.fixture
def task_set(client: SandpiperClient, tmp_path: Path) -> dict[str, Any]:
    tasks = [Task.model_validate(task_data(n, split="heldout" if n == 3 else "train")) for n in (1, 2, 3)]
    write_task_set(TaskSetInfo(name="adding"), tasks, tmp_path / "set")
    return client.submit_task_set(tmp_path / "set")


def test_ready_on_both_ports(stack: RunningStack, client: SandpiperClient) -> None:
    assert client.ready()["checks"] == {"postgres": "ok", "broker": "ok", "objects": "ok"}
    assert stack.process("api").state == "ready"


def test_a_folder_becomes_a_task_set_once(
    client: SandpiperClient, task_set: dict[str, Any], tmp_path: Path
) -> None:
    assert task_set["splits"] == {"heldout": 1, "train": 2}
    assert [task["id"] for task in client.tasks("adding", split="train")] == ["add-1", "add-2"]
    assert client.submit_task_set(tmp_path / "set")["id"] == task_set["id"]
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(jsonl(task_data(1)) + b"{}\n")
    with pytest.raises(ApiError) as caught:
        client.submit_task_set(bad, name="bad")
    assert caught.value.errors[0]["line"] == 2
    assert list(client.task_sets("bad")) == []


def test_a_run_is_there_when_the_answer_is(client: SandpiperClient, task_set: dict[str, Any]) -> None:
    run = client.create_run(DOCUMENT)
    assert run["state"] == "waiting"
    assert run["task_set_id"] == task_set["id"]
    assert run["trace_id"] is not None
    with pytest.raises(ApiError, match="cannot be resumed"):
        client.resume_run(run["id"])
    assert client.cancel_run(run["id"])["state"] == "cancelled"
    with pytest.raises(ApiError) as caught:
        client.cancel_run(run["id"])
    assert caught.value.status == 409


def test_many_retries_at_once_make_one_run(stack: RunningStack, task_set: dict[str, Any]) -> None:
    headers = {"Idempotency-Key": hashlib.sha256(os.urandom(8)).hexdigest()}
    answers: list[httpx.Response] = []

    def post() -> None:
        answers.append(httpx.post(f"{stack.api_url}/v1/runs", json=DOCUMENT, headers=headers, timeout=30))

    threads = [threading.Thread(target=post) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1


def test_a_stream_ends_with_its_run(client: SandpiperClient, task_set: dict[str, Any]) -> None:
    run = client.create_run(DOCUMENT)
    events: list[Event] = []
    watching = threading.Event()

    def watch() -> None:
        with SandpiperClient(client.url) as other:
            for event in other.events(run["id"]):
                events.append(event)
                watching.set()

    thread = threading.Thread(target=watch)
    thread.start()
    assert watching.wait(20)
    client.cancel_run(run["id"])
    thread.join(20)
    assert not thread.is_alive()
    assert events[0].kind == "snapshot"
    assert events[-1].kind == "end"
    assert events[-1].data["state"] == "cancelled"


def test_sigterm_ends_streams_and_the_process(make_stack: MakeStack) -> None:
    stack = make_stack(replicas=ALONE)
    with SandpiperClient(stack.api_url, retry_s=120) as client:
        file = stack.folder.path / "x.jsonl"
        file.write_bytes(jsonl(task_data()))
        client.submit_task_set(file, name="adding")
        run = client.create_run(DOCUMENT)
        stream = client.events(run["id"])
        assert next(stream).kind == "snapshot"
        before = stack.process("api").pid
        assert before is not None
        began = time.monotonic()
        os.kill(before, signal.SIGTERM)
        try:
            kinds = [event.kind for event in stream]
        except ClientError:
            kinds = []
        assert "end" not in kinds, "the run has not ended"
        assert time.monotonic() - began < 15
        # The supervisor starts another one; clients that retry go on with it.
        assert client.wait_run(client.cancel_run(run["id"])["id"])["state"] == "cancelled"


def test_no_keys_beyond_loopback() -> None:
    env = {**os.environ, "SANDPIPER_HTTP__HOST": "0.0.0.0"}
    ended = subprocess.run(
        [sys.executable, "-m", "services.api"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert "without API keys" in ended.stderr
