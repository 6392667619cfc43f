"""The executor as an ordinary user without any capability, as in the container of the compose stack."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UID = "61234"
PROGRAM = """
import asyncio, json, os, sys
from pathlib import Path
from sandpiper.v1 import sandbox_pb2 as pb
from services.sandbox_executor.backend.protocol import FileSpec, SandboxSpec
from services.sandbox_executor.outcome import decide
from tests.integration.sandbox_executor.backends import BACKENDS, LIMITS, limits, python, shell
from tests.integration.sandbox_executor.backends import groups_of, processes_of, uids_of

FORKS = "import os, time\\nwhile True:\\n if not os.fork(): time.sleep(60)"

async def main():
    backend = BACKENDS["bubblewrap"](Path(sys.argv[1]))
    await backend.start()
    said = {"uid": os.getuid(), "isolation": list(backend.isolation)}
    try:
        sandbox = await backend.create(SandboxSpec("a", LIMITS.disk_bytes))
        await sandbox.write([FileSpec("x.py", b"print(6 * 7)")])
        said["out"] = (await shell(sandbox, "id -u; python3 x.py")).stdout.decode().split()
        said["host_uids"] = uids_of(backend.instance)
        cases = {
            "sleep": (await shell(sandbox, "sleep 60 & sleep 60", wall_s=0.3), limits(wall_s=0.3)),
            "spin": (await python(sandbox, "while True: pass", cpu_s=0.3), limits(cpu_s=0.3)),
            "memory": (await python(sandbox, "b = bytearray(400 << 20)"), LIMITS),
            "forks": (await python(sandbox, FORKS), LIMITS),
            "disk": (await shell(sandbox, "cat /dev/zero > big"), LIMITS),
        }
        said["outcomes"] = {name: pb.Outcome.Name(decide(*case)) for name, case in cases.items()}
        said["source"] = cases["sleep"][0].source
        said["snapshot"] = len(await sandbox.snapshot(32 << 20, 100)) > 1024
    finally:
        await backend.stop()
    groups = [str(path) for path in groups_of(backend.instance)]
    said["left"] = [processes_of(backend.instance), groups, os.path.exists(sys.argv[1])]
    print(json.dumps(said))

asyncio.run(main())
"""


def _interpreter(environment: dict[str, str]) -> list[str] | None:
    """An interpreter of our version that the other uid may use, with our packages."""
    prefix = [
        "setpriv",
        "--reuid",
        UID,
        "--regid",
        UID,
        "--clear-groups",
        "--no-new-privs",
        "--inh-caps=-all",
    ]
    prefix += ["--bounding-set=-all"]
    check = f"import sys, sandpiper.ids; sys.exit(sys.version_info[:2] != {sys.version_info[:2]!r})"
    for python in (sys.executable, shutil.which(f"python{sys.version_info[0]}", path="/usr/bin") or ""):
        command = [*prefix, python]
        done = subprocess.run(
            [*command, "-c", check], env=environment, capture_output=True, check=False, cwd="/"
        )
        if done.returncode == 0:
            return command
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_an_unprivileged_executor_isolates_and_limits(tmp_path: Path) -> None:
    packages = sysconfig.get_path("purelib")
    environment = {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "libs"), str(ROOT), packages]),
        "PATH": "/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = _interpreter(environment)
    if command is None:
        pytest.skip("no interpreter, tree or packages that another uid can read")
    folder = Path("/tmp") / f"sandpiper-non-root-{os.getpid()}"
    folder.mkdir()
    os.chown(folder, int(UID), int(UID))
    try:
        process = await asyncio.create_subprocess_exec(
            *command, "-c", PROGRAM, str(folder), env=environment, cwd="/",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        async with asyncio.timeout(90):
            out, err = await process.communicate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert process.returncode == 0, err.decode()[-2000:]
    said = json.loads(out)
    assert said["uid"] == int(UID)
    assert {"user", "pid", "net", "seccomp", "no-new-privs", "rlimits"} <= set(said["isolation"])
    assert said["out"] == ["1000", "42"]
    assert said["host_uids"] == [int(UID)]
    assert said["source"] == "rusage"
    assert said["outcomes"] == {
        "sleep": "OUTCOME_WALL_TIMEOUT",
        "spin": "OUTCOME_CPU_TIMEOUT",
        "memory": "OUTCOME_OOM",
        "forks": "OUTCOME_PIDS_LIMIT",
        "disk": "OUTCOME_DISK_LIMIT",
    }
    assert said["snapshot"]
    assert said["left"] == [[], [], False]
