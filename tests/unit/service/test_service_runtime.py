"""A service starts, serves, drains and ends with the right exit code, whatever happens to it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.integration.brokers import free_ports

PROGRAM = """
import asyncio, sys
from functools import partial
from sandpiper.service import ServiceSettings, Stack, run

def say(*words):
    print(*words, flush=True)

async def live(stack):
    try:
        await stack.stopping.wait()
        say("task saw stop")
    finally:
        say("task over")

async def stubborn():
    try:
        await asyncio.sleep(3600)
    finally:
        say("cancelled")

async def ends(error):
    await asyncio.sleep(0.05)
    if error:
        raise error

async def drain(seconds):
    say("draining", seconds > 0)
    await asyncio.sleep(seconds + 60 if MODE == "slow" else 0)

async def start(settings, stack):
    async def closed(name):
        say("closed", name)
    stack.on_close(partial(closed, "first"))
    stack.on_close(partial(closed, "second"))
    stack.on_drain(drain)
    stack.ready("flag", lambda: MODE != "unready")
    if MODE == "bad start":
        raise RuntimeError("no database")
    if MODE == "hung start":
        say("up")
        await asyncio.sleep(3600)
    work = [live(stack), stubborn()]
    if MODE == "fails":
        work.append(ends(ValueError("boom")))
    if MODE == "returns":
        work.append(ends(None))
    say("up")
    return work

MODE = sys.argv[1]
run("probe", ServiceSettings, lambda settings: partial(start, settings))
"""


@asynccontextmanager
async def service(mode: str, **env: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM,
        mode,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "SANDPIPER_DRAIN_S": "1", **env},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def up(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    assert (await asyncio.wait_for(process.stdout.readline(), 30)).decode().strip() == "up"


async def end(process: asyncio.subprocess.Process) -> tuple[int, list[str], list[dict[str, object]]]:
    """Exit code, what it said, what it logged."""
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode is not None
    logged = [json.loads(line) for line in err.decode().splitlines()]
    return process.returncode, out.decode().splitlines(), logged


async def test_a_signal_drains_cancels_closes_and_exits_clean() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        async with service("plain") as process:
            await up(process)
            process.send_signal(number)
            code, said, logged = await end(process)
        assert code == 0
        assert sorted(said[:4]) == sorted(["task saw stop", "task over", "draining True", "cancelled"])
        assert said[4:] == ["closed second", "closed first"]
        assert [line["event"] for line in logged] == [
            "service.started",
            "service.stopping",
            "service.stopped",
        ]


@pytest.mark.parametrize(
    ("mode", "event"), [("fails", "service.task_failed"), ("returns", "service.task_ended")]
)
async def test_a_task_that_ends_ends_the_service_with_a_failure(mode: str, event: str) -> None:
    async with service(mode) as process:
        code, said, logged = await end(process)
    assert code == 1
    assert said[-2:] == ["closed second", "closed first"]
    problem = next(line for line in logged if line["event"] == event)
    assert problem["task"] == "ends"
    assert ("boom" in str(problem.get("exception"))) == (mode == "fails")


async def test_a_start_that_fails_closes_what_it_had_opened() -> None:
    async with service("bad start") as process:
        code, said, logged = await end(process)
    assert (code, said[-2:]) == (1, ["closed second", "closed first"])
    assert "no database" in str(next(line for line in logged if line["event"] == "service.start_failed"))


async def test_a_start_that_hangs_can_be_stopped_and_has_its_own_deadline() -> None:
    async with service("hung start") as process:
        await up(process)
        process.terminate()
        code, said, _ = await end(process)
    assert (code, said[-1]) == (0, "closed first")
    async with service("hung start", SANDPIPER_START_S="0.2") as process:
        code, _, _ = await end(process)
    assert code == 1


async def test_a_drain_that_hangs_is_cut_and_a_second_signal_cuts_at_once() -> None:
    async with service("slow") as process:
        await up(process)
        process.terminate()
        _, said, _ = await end(process)
    assert said[-1] == "closed first"
    async with service("slow", SANDPIPER_DRAIN_S="60") as process:
        await up(process)
        process.terminate()
        await asyncio.sleep(0.5)
        process.terminate()
        _, said, _ = await end(process)
    assert said[-1] == "closed first"


async def test_bad_settings_are_named_and_unknown_ones_warned_of() -> None:
    async with service("plain", SANDPIPER_LOG_LEVEL="loud") as process:
        _, err = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 2
        assert err.decode().startswith("probe: bad settings: SANDPIPER_LOG_LEVEL: ")
    async with service("plain", SANDPIPER_DRAINS="3") as process:
        await up(process)
        process.terminate()
        _, _, logged = await end(process)
    assert logged[0]["problem"] == (
        "SANDPIPER_DRAINS is not a setting of this service (did you mean SANDPIPER_DRAIN_S?)"
    )


@pytest.mark.parametrize(("mode", "ready"), [("plain", 200), ("unready", 503)])
async def test_health_is_served_while_it_lives(mode: str, ready: int) -> None:
    (port,) = free_ports(1)

    def status(path: str) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    async with service(mode, SANDPIPER_HEALTH_PORT=str(port)) as process:
        await up(process)
        await _until(lambda: status("/healthz") == 200)
        await _until(lambda: status("/readyz") == ready)
        process.terminate()
        code, _, _ = await end(process)
        assert code == 0


async def _until(condition: Callable[[], bool]) -> None:
    for _ in range(100):
        if await asyncio.to_thread(condition):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(condition)
