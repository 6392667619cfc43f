"""The demo as a user starts it: it learns, says so truly, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.support import ROOT

KEYS = {
    "preset", "steps", "pass_before", "pass_after", "ci_low", "ci_high", "reward_first", "reward_last",
    "episodes", "infra_errors", "tokens_per_s", "wall_s", "engine",
}  # fmt: skip


OURS = ("services.", "sandpiper.embedded", "tansu", "bwrap", "rclone serve")


def traces_of_stacks() -> set[str]:
    """Processes, mounts, temporary folders and control groups that belong to a stack or a sandbox."""
    mounts = {line for line in Path("/proc/mounts").read_text().splitlines() if "sandpiper" in line}
    folders = {str(path) for path in Path(tempfile.gettempdir()).glob("sandpiper-*")}
    groups = {str(path) for path in Path("/sys/fs/cgroup").rglob("*sandpiper-*")}
    return mounts | folders | groups | set(_processes())


def _processes() -> Iterator[str]:
    for process in psutil.process_iter(["pid", "cmdline"]):
        words = " ".join(process.info["cmdline"] or [])
        if any(
            part in words for part in ("services.", "sandpiper.embedded", "tansu", "bwrap", "rclone serve")
        ):
            yield f"{process.info['pid']} {words[:200]}"


def settled(before: set[str], within_s: float = 10.0) -> set[str]:
    """What is there that was not, after at most `within_s` seconds of grace."""
    ends = time.monotonic() + within_s
    while (left := traces_of_stacks() - before) and time.monotonic() < ends:
        time.sleep(0.2)
    return left


def start(out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "sandpiper.demo", "--preset", "tiny", "--out", str(out)]
    command += ["--json", str(out / "numbers.json")]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


@pytest.mark.timeout(600)
def test_the_tiny_demo_learns_and_leaves_nothing(tmp_path: Path) -> None:
    before = traces_of_stacks()
    demo = start(tmp_path)
    _, said = demo.communicate(timeout=540)
    assert demo.returncode == 0, said
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    assert set(numbers) == KEYS
    assert numbers["infra_errors"] == 0
    assert numbers["ci_low"] > 0, said
    assert numbers["pass_after"] > numbers["pass_before"] + 0.3
    assert numbers["reward_last"] > numbers["reward_first"]
    assert "reward" in (tmp_path / "sandpiper-demo-tiny.html").read_text()
    assert settled(before) == set()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    before = traces_of_stacks()
    demo = start(tmp_path)
    assert demo.stderr is not None
    for line in demo.stderr:
        if "in flight" in line and " 0 in flight" not in line:
            break
    os.kill(demo.pid, number)
    _, said = demo.communicate(timeout=60)
    assert demo.returncode == 130, said
    assert settled(before) == set()
