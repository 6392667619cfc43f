"""Runs the runner scripts as plain processes, without a sandbox: they must behave the same without one."""

from __future__ import annotations

import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandpiper.tasks.languages import RUNNERS, hidden_argv, visible_argv
from sandpiper.tasks.local import RUNNER_FOLDER
from sandpiper.tasks.model import Files, Task
from sandpiper.tasks.plan import HiddenTest, Report, expected_tests, private_plan, read_report

NONCE = "0123456789abcdef"
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


@dataclass(frozen=True)
class Raw:
    """What a process left behind."""

    code: int
    output: str
    channel: bytes = b""


def make_task(hidden: str | Files, *, language: str = "python", **changes: Any) -> Task:
    """A task around hidden tests."""
    suffix = "py" if language == "python" else "js"
    runner = "asserts" if language == "python" else "node"
    name = "test_hidden.py" if language == "python" else "hidden.test.js"
    files = hidden if isinstance(hidden, dict) else {name: hidden}
    visible_name = "test_visible.py" if language == "python" else "visible.test.js"
    data: dict[str, Any] = {
        "id": "t",
        "family": "t",
        "language": language,
        "instruction": "x",
        "workspace": {},
        "solution_path": f"solution.{suffix}",
        "visible": {"runner": runner, "files": {visible_name: "x = 1\n"}},
        "hidden": {"runner": runner, "files": files},
        "reference": {f"solution.{suffix}": "x = 1\n"},
        "limits": {"wall_s": 20, "cpu_s": 5},
    }
    return Task.model_validate(data | changes)


def write(folder: Path, files: Files) -> None:
    """Files into the workspace."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def run_hidden(
    task: Task,
    folder: Path,
    solution: str | Files,
    timeout: float = 150.0,
    argv: tuple[str, ...] | None = None,
) -> Raw:
    """The hidden runner of `task` over a workspace that holds `solution`."""
    write(folder, solution if isinstance(solution, dict) else {task.solution_path: solution})
    ours, theirs = socket.socketpair()
    plan = private_plan(task, NONCE)
    with ours, theirs:
        ours.settimeout(timeout)
        process = subprocess.Popen(
            _here(argv or hidden_argv(task)),
            cwd=folder,
            env=ENVIRONMENT | {"SANDPIPER_RESULT_FD": str(theirs.fileno())},
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            theirs.close()
            ours.sendall(len(plan).to_bytes(4, "big") + plan)
            channel = b"".join(iter(lambda: ours.recv(1 << 16), b""))
            output, _ = process.communicate(timeout=timeout)
        finally:
            process.kill()
            process.wait()
    return Raw(process.returncode, output, channel)


def hidden_report(task: Task, folder: Path, solution: str | Files) -> Report:
    """The report of the hidden runner."""
    raw = run_hidden(task, folder, solution)
    assert raw.code == 0, raw.output
    return read_report(raw.channel, NONCE, expected_tests(task.hidden))


def by_name(report: Report) -> dict[str, HiddenTest]:
    """Tests of a report by their name without the file."""
    return {test.id.partition("::")[2]: test for test in report.tests}


def run_visible(task: Task, folder: Path, solution: str | Files) -> Raw:
    """The visible runner over a workspace that holds `solution` and the visible tests."""
    write(folder, solution if isinstance(solution, dict) else {task.solution_path: solution})
    write(folder, task.visible.files)
    done = subprocess.run(
        _here(visible_argv(task)),
        check=False,
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=150,
    )
    return Raw(done.returncode, done.stdout + done.stderr)


def _here(argv: tuple[str, ...]) -> list[str]:
    return [word.replace(RUNNERS, str(RUNNER_FOLDER)) for word in argv]
