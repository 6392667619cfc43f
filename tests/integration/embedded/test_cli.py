"""`sandpiper up`, `status`, `logs`, `down` as a person types them (without the services)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandpiper.embedded.launch import shut_down
from sandpiper.embedded.options import SERVICES
from sandpiper.embedded.state import DataFolder
from tests.integration.embedded import leftovers

NO_SERVICES = [argument for service in SERVICES for argument in ("--scale", f"{service}=0")]
CLI = [sys.executable, "-m", "sandpiper.cli"]


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    yield folder
    shut_down(DataFolder(folder))


def sandpiper(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"SANDPIPER_DATA_DIR": str(data_dir), "COLUMNS": "120"}
    return subprocess.run(
        [*CLI, *arguments],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=data_dir.parent,
    )


def test_detached_life(data_dir: Path) -> None:
    absent = sandpiper(data_dir, "status")
    assert (absent.returncode, "no stack runs" in absent.stdout) == (3, True)

    up = sandpiper(data_dir, "up", "--detach", *NO_SERVICES)
    assert up.returncode == 0, up.stderr
    for expected in ("broker", "postgres", "objects", "ready", "127.0.0.1:", "sandpiper tasks submit"):
        assert expected in up.stdout

    status = sandpiper(data_dir, "status", "--json")
    shown = json.loads(status.stdout)
    assert status.returncode == 0
    assert [process["state"] for process in shown["processes"]] == ["ready"] * 3
    state = DataFolder(data_dir).read_state()
    assert state is not None
    assert state.objects_secret_key not in status.stdout
    assert "postgresql" not in status.stdout

    logs = sandpiper(data_dir, "logs", "postgres", "-n", "5")
    assert "ready to accept connections" in logs.stdout
    unknown = sandpiper(data_dir, "logs", "nobody")
    assert (unknown.returncode, "there are: broker, objects, postgres" in unknown.stderr) == (1, True)

    twice = sandpiper(data_dir, "up", "--detach", *NO_SERVICES)
    assert (twice.returncode, "already runs" in twice.stderr) == (1, True)

    assert sandpiper(data_dir, "down").stdout == "stopped\n"
    assert leftovers.of(state, data_dir, None) == []
    assert "no stack runs" in sandpiper(data_dir, "down").stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_foreground_until_a_signal(data_dir: Path, number: signal.Signals) -> None:
    env = os.environ | {"SANDPIPER_DATA_DIR": str(data_dir)}
    process = subprocess.Popen([*CLI, "up", *NO_SERVICES], env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    output = ""
    while "Ctrl-C stops everything" not in output:
        line = process.stdout.readline()
        assert line, output
        output += line
    state = DataFolder(data_dir).read_state()
    assert state is not None
    assert state.supervisor_alive
    segment = leftovers.shared_memory(data_dir)
    process.send_signal(number)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "stopping" in rest
    assert leftovers.of(state, data_dir, segment) == []


def test_a_killed_stack_is_told_and_cleared(data_dir: Path) -> None:
    assert sandpiper(data_dir, "up", "--detach", *NO_SERVICES).returncode == 0
    folder = DataFolder(data_dir)
    state = folder.read_state()
    assert state is not None
    guardian = next(
        int(pid)
        for pid in Path(f"/proc/{state.supervisor_pid}/task/{state.supervisor_pid}/children")
        .read_text()
        .split()
        if "reaper.py" in Path(f"/proc/{pid}/cmdline").read_text()
    )
    os.kill(guardian, signal.SIGKILL)
    os.kill(state.supervisor_pid, signal.SIGKILL)
    status = sandpiper(data_dir, "status")
    assert (status.returncode, "was killed" in status.stderr) == (1, True)
    assert sandpiper(data_dir, "down").returncode == 0
    assert leftovers.of(state, data_dir, None) == []


def test_wrong_use_is_told(data_dir: Path) -> None:
    wrong = sandpiper(data_dir, "up", "--scale", "learners=2")
    assert wrong.returncode == 2
    assert "SERVICE=N" in wrong.stderr
    assert not data_dir.exists()
