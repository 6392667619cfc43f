"""Hostile programs against the executor's sandboxes, each beside a neighbour that must not notice.

A program's first lines say which outcomes are right and within how many seconds. `ESCAPED` in its output
means that something worked which must not.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from sandpiper.execution import outcome_name
from sandpiper.v1 import sandbox_pb2 as pb
from services.sandbox_executor.backend.bubblewrap.backend import BubblewrapBackend
from services.sandbox_executor.backend.protocol import (
    FileSpec,
    Limits,
    Refused,
    RunEvidence,
    RunSpec,
    Sandbox,
    SandboxSpec,
)
from services.sandbox_executor.outcome import decide
from tests.integration.sandbox_executor.backends import limits, mounts, processes_of, shell
from tests.integration.sandbox_executor.conftest import backend

__all__ = ["backend"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROGRAMS = sorted(
    path for path in (Path(__file__).parent / "hostile").iterdir() if path.suffix in (".py", ".sh")
)
LIMITS = limits(wall_s=15, cpu_s=5)
NEIGHBOUR = "import time\nfor _ in range(5):\n    print(sum(range(20000)), flush=True); time.sleep(0.05)"
NEIGHBOUR_SAYS = b"199990000\n" * 5


@dataclass(frozen=True)
class Header:
    """What a program's first lines say."""

    expected: list[str]
    within: float
    changes: dict[str, Any]
    """Limits other than LIMITS."""


@pytest.fixture
def bait() -> Iterator[list[str]]:
    """What the host has and a sandbox must not reach: a TCP port, an abstract socket, a file."""
    abstract = f"sandpiper-bait-{secrets.token_hex(4)}"
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind("\0" + abstract)
        unix.listen()
        canary = stack.enter_context(tempfile.NamedTemporaryFile(prefix="canary-", suffix=".txt"))
        canary.write(b"a secret of the host")
        canary.flush()
        Path(canary.name).chmod(0o644)
        yield [str(tcp.getsockname()[1]), abstract, canary.name]
        assert Path(canary.name).read_bytes() == b"a secret of the host"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
async def test_hostile_program(backend: BubblewrapBackend, program: Path, bait: list[str]) -> None:
    text = program.read_text()
    header = _header(text)
    bounds = replace(LIMITS, **header.changes)
    mounted = mounts()
    hostile = await backend.create(SandboxSpec("hostile", LIMITS.disk_bytes))
    neighbour = await backend.create(SandboxSpec("neighbour", LIMITS.disk_bytes))
    try:
        began = time.monotonic()
        attack = _attack(hostile, program.name, text, bait, bounds)
        evidence, beside = await asyncio.gather(attack, _live(neighbour))
        took = time.monotonic() - began
        outcome = outcome_name(decide(evidence, bounds))
        assert b"ESCAPED" not in evidence.stdout + evidence.stderr, evidence.stdout
        assert outcome in header.expected, evidence
        assert took < header.within
        assert (beside.stdout, beside.exit_code, beside.stop) == (NEIGHBOUR_SAYS, 0, "")
        await _still_usable(hostile)
    finally:
        await asyncio.gather(hostile.destroy(), neighbour.destroy())
    assert processes_of(backend.instance) == []
    assert mounts() == mounted


async def test_programs_one_after_another_in_one_sandbox(backend: BubblewrapBackend, bait: list[str]) -> None:
    """What one leaves behind does not reach the next, nor slow it down."""
    sandbox = await backend.create(SandboxSpec("series", LIMITS.disk_bytes))
    names = ("fork_bomb.py", "child_daemon.py", "memory_heap.py", "memory_shm.py", "supervisor_attack.py")
    try:
        for program in PROGRAMS:
            if program.name in names:
                await _attack(sandbox, program.name, program.read_text(), bait)
        evidence = await shell(
            sandbox, "ls -A /tmp /dev/shm; ls -d /proc/[0-9]* | wc -l; cat /workspace/late || true"
        )
        assert evidence.stdout.split()[-1] in (b"3", b"4")
        assert decide(evidence, LIMITS) == pb.OUTCOME_OK
        assert evidence.wall_s < 2
    finally:
        await sandbox.destroy()


async def test_the_program_cannot_answer_in_the_supervisors_name(backend: BubblewrapBackend) -> None:
    """A forged report on stdout, stderr and the private channel is just output."""
    forged = "d4:exiti0e6:signali0e4:stop0:e"
    script = f"printf '{forged}'; printf '{forged}' >&2; printf '{forged}' >&$SANDPIPER_RESULT_FD; exit 9"
    sandbox = await backend.create(SandboxSpec("forger", LIMITS.disk_bytes))
    try:
        evidence = await sandbox.run(RunSpec(["/bin/sh", "-c", script], LIMITS, private_channel=True))
        assert evidence.exit_code == 9
        assert evidence.stdout == evidence.stderr == evidence.channel == forged.encode()
    finally:
        await sandbox.destroy()


async def _attack(
    sandbox: Sandbox, name: str, text: str, bait: list[str], bounds: Limits = LIMITS
) -> RunEvidence:
    await sandbox.write([FileSpec(name, text.encode())])
    interpreter = "/usr/bin/python3" if name.endswith(".py") else "/bin/sh"
    arguments = bait if name == "network.py" else bait[2:]
    return await sandbox.run(RunSpec([interpreter, name, *arguments], bounds))


async def _live(sandbox: Sandbox) -> RunEvidence:
    return await sandbox.run(RunSpec(["/usr/bin/python3", "-c", NEIGHBOUR], limits(wall_s=30)))


async def _still_usable(sandbox: Sandbox) -> None:
    """The supervisor lives: the next run is an ordinary one, and a snapshot ends either way."""
    evidence = await shell(sandbox, "echo alive; ls -d /proc/[0-9]* | wc -l")
    assert evidence.stdout.split()[0] == b"alive"
    assert int(evidence.stdout.split()[1]) <= 4, "processes of the last run are left"
    try:
        archive = await sandbox.snapshot(64 << 20, 5000)
    except Refused as refused:
        if refused.reason != "too_big":
            raise
    else:
        assert b"a secret of the host" not in archive


def _header(text: str) -> Header:
    fields = dict(re.findall(r"^# (expect|limits|within): (.*)$", text, re.MULTILINE))
    changes = dict(word.split("=") for word in fields.get("limits", "").split())
    numbers = {name: float(value) for name, value in changes.items()}
    return Header(fields["expect"].split(), float(fields["within"]), numbers)
