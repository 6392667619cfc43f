"""kill -9 of an executor: its sandboxes end with it, and the next one clears what the kernel does not."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from services.sandbox_executor.backend import reaper
from tests.integration.sandbox_executor.backends import BACKENDS, groups_of, processes_of

ROOT = Path(__file__).parents[3]
PROGRAM = """
import asyncio, sys
from pathlib import Path
from services.sandbox_executor.backend.protocol import SandboxSpec
from tests.integration.sandbox_executor.backends import BACKENDS, LIMITS, shell

async def main():
    backend = BACKENDS[sys.argv[1]](Path(sys.argv[2]))
    await backend.start()
    script = "setsid sleep 600 & exec sleep 600"
    boxes = [await backend.create(SandboxSpec(f"box-{n}", LIMITS.disk_bytes)) for n in range(3)]
    runs = [asyncio.create_task(shell(box, script, wall_s=600)) for box in boxes[:2]]
    await asyncio.sleep(0.3)
    print(backend.instance, flush=True)
    await asyncio.wait(runs)

asyncio.run(main())
"""


async def _start_victim(backend: str, folder: Path) -> tuple[asyncio.subprocess.Process, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, backend, str(folder),
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'libs'}{os.pathsep}{ROOT}"},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    async with asyncio.timeout(60):
        return process, (await process.stdout.readline()).decode().strip()


@pytest.mark.parametrize("kind", sorted(BACKENDS))
async def test_nothing_survives_kill_9(kind: str) -> None:
    folder = Path("/tmp") / f"sandpiper-killed-{os.getpid()}-{kind}"
    folder.mkdir()
    successor = BACKENDS[kind](folder)
    try:
        process, instance = await _start_victim(kind, folder)
        assert len(processes_of(instance)) >= 10
        assert not reaper.owner_is_dead(instance)
        process.send_signal(signal.SIGKILL)
        await process.wait()
        until = time.monotonic() + 10
        while processes_of(instance) and time.monotonic() < until:
            await asyncio.sleep(0.05)
        assert processes_of(instance) == []
        assert reaper.owner_is_dead(instance)
        assert (folder / instance).exists()
        await successor.start()
        assert groups_of(instance) == []
        assert [path.name for path in folder.iterdir()] == [successor.instance]
    finally:
        await successor.stop()
    assert not folder.exists()


async def test_the_reaper_kills_marked_processes_of_the_dead_and_spares_the_living(tmp_path: Path) -> None:
    own = reaper.instance_name()
    dead = "-".join([*own.split("-")[:2], "4194300", "17", "abc123"])
    assert reaper.owner_is_dead(dead)
    code = "import time; time.sleep(60)"
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-I", "-S", "-c", code, f"{name}/0/box")
        for name in (own, dead)
    ]
    (tmp_path / dead).mkdir()
    (tmp_path / own).mkdir()
    try:
        await asyncio.sleep(0.1)
        assert await asyncio.to_thread(reaper.reap, reaper.instance_name(), None, tmp_path) == 2
        async with asyncio.timeout(5):
            assert await processes[1].wait() == -signal.SIGKILL
        assert processes[0].returncode is None
        assert [path.name for path in tmp_path.iterdir()] == [own]
    finally:
        processes[0].kill()
        await processes[0].wait()
