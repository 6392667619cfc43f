"""kill -9 of every service during a run: it finishes with the same counts, nothing lost or doubled."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import asyncpg
import pytest

from sandpiper.cli.client import SandpiperClient
from sandpiper.demo.presets import PRESETS
from sandpiper.embedded.options import SERVICES
from tests.e2e.support import ROOT, tiny_document
from tests.stack import MakeStack, RunningStack

STEPS = 4
WITHIN_S = 400.0
OVER = {"trained", "discarded", "failed"}

DEADLINES = {"generation_s": 20, "execution_s": 20, "grading_s": 20, "episode_s": 300, "group_s": 300}


def kill(stack: RunningStack, name: str) -> None:
    """SIGKILL of one process, and wait until the supervisor has started another."""
    victim = stack.process(name).pid
    os.kill(victim, signal.SIGKILL)
    ends = time.monotonic() + 120
    while stack.process(name).pid == victim:
        assert time.monotonic() < ends, f"{name} was not restarted"
        time.sleep(0.2)


def wait_until(condition: Callable[[], bool], what: str, within_s: float = WITHIN_S) -> None:
    """Poll, bounded."""
    ends = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < ends, f"waited in vain for {what}"
        time.sleep(0.2)


def step_episodes(stack: RunningStack, run_id: str) -> list[tuple[str, int]]:
    """(episode, step) as recorded."""

    async def fetch() -> list[Any]:
        connection = await asyncpg.connect(stack.database_url.replace("+asyncpg", ""))
        try:
            return await connection.fetch(
                "SELECT episode_id, step FROM step_episodes WHERE run_id = $1", run_id
            )
        finally:
            await connection.close()

    return [(row["episode_id"], row["step"]) for row in asyncio.run(fetch())]


def check(client: SandpiperClient, stack: RunningStack, run: dict[str, Any]) -> None:
    """Nothing lost, nothing doubled."""
    assert (run["state"], run["step"]) == ("succeeded", STEPS), run["reason"]
    assert [step["step"] for step in client.steps(run["id"])] == list(range(1, STEPS + 1))
    episodes = {episode["id"]: episode for episode in client.episodes(run["id"])}
    assert {episode["state"] for episode in episodes.values()} <= OVER
    trained = step_episodes(stack, run["id"])
    counts = Counter(episode_id for episode_id, _ in trained)
    assert set(counts.values()) == {1}
    assert set(counts) == {e["id"] for e in episodes.values() if e["state"] == "trained"}
    groups = Counter(episodes[episode_id]["group_id"] for episode_id, _ in trained)
    assert len(groups) == STEPS * 4
    for episode_id, step in trained:
        assert episodes[episode_id]["trained_step"] == step
        assert episodes[episode_id]["reward"] is not None


@pytest.mark.timeout(900)
def test_each_service_is_killed_once_during_a_run(make_stack: MakeStack) -> None:
    stack = make_stack(
        engine="torch", env={"SANDPIPER_RESEND_S": "10"}, service_env=PRESETS["tiny"].service_env
    )
    with SandpiperClient(stack.api_url, retry_s=60.0) as client:
        task_set = client.submit_task_set(ROOT / "examples" / "tasks" / "tiny")
        created = client.create_run(tiny_document(task_set["id"], STEPS, deadlines=DEADLINES))
        run_id = created["id"]
        wait_until(lambda: client.run(run_id)["episodes"]["graded"] >= 1, "the first verdict")
        for service in SERVICES:
            kill(stack, service)
            before = client.run(run_id)["episodes"]["graded"]
            wait_until(
                lambda before=before: (
                    client.run(run_id)["episodes"]["graded"] > before
                    or client.run(run_id)["state"] == "succeeded"
                ),
                f"progress after {service} was killed",
            )
        check(client, stack, client.wait_run(run_id, timeout_s=WITHIN_S))


@pytest.mark.timeout(900)
def test_the_broker_is_lost_with_everything_in_it(make_stack: MakeStack) -> None:
    stack = make_stack(
        engine="torch", env={"SANDPIPER_RESEND_S": "10"}, service_env=PRESETS["tiny"].service_env
    )
    with SandpiperClient(stack.api_url, retry_s=60.0) as client:
        task_set = client.submit_task_set(ROOT / "examples" / "tasks" / "tiny")
        created = client.create_run(tiny_document(task_set["id"], STEPS, deadlines=DEADLINES))
        wait_until(lambda: client.run(created["id"])["episodes"]["graded"] >= 1, "the first verdict")
        kill(stack, "broker")
        check(client, stack, client.wait_run(created["id"], timeout_s=WITHIN_S))
