"""Validation says what a task set promises and does not keep; the sandbox is a fake here."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from sandpiper.runners import codec
from sandpiper.tasks.local import Execution, ExecutionResult
from sandpiper.tasks.model import Task
from sandpiper.tasks.validate import NONCE, TaskResult, failures, validate_task, validate_tasks

Judge = Callable[[Execution], bool]


def make_task(task_id: str = "t", **changes: Any) -> Task:
    data: dict[str, Any] = {
        "id": task_id,
        "family": "t",
        "language": "python",
        "instruction": "x",
        "workspace": {"solution.py": "stub"},
        "solution_path": "solution.py",
        "visible": {"runner": "asserts", "files": {"test_visible.py": "def test_v(): pass\n"}},
        "hidden": {"runner": "asserts", "files": {"test_hidden.py": "def test_h(): pass\n"}},
        "reference": {"solution.py": "good"},
    }
    return Task.model_validate(data | changes)


class FakeRunner:
    """Runs nothing: a submission passes when `judge` says so."""

    def __init__(self, judge: Judge, *, silent: bool = False) -> None:
        self._judge, self._silent = judge, silent
        self.seen: list[Execution] = []
        self._lock = threading.Lock()

    def run(self, execution: Execution) -> ExecutionResult:
        with self._lock:
            self.seen.append(execution)
        passed = self._judge(execution)
        if execution.private_input is None:
            return ExecutionResult(0 if passed else 1, "1 of 1 tests failed", b"", 0.1)
        if self._silent:
            return ExecutionResult(70, "Traceback", b"", 0.1)
        status = ("passed", "") if passed else ("failed", "assertion")
        test = dict(zip(("status", "kind"), status, strict=True))
        test |= {"id": "test_hidden.py::test_h", "message": "got 0", "seconds": 0.1}
        report = {"nonce": NONCE, "tests": [test], "missing": []}
        return ExecutionResult(0, "", codec.encode(report), 0.1)


def good_only(execution: Execution) -> bool:
    return execution.files["solution.py"] == "good"


def test_a_good_task_has_three_checks_that_hold() -> None:
    runner = FakeRunner(good_only)
    result = validate_task(make_task(), runner)
    assert result.ok
    assert [check.name for check in result.checks] == [
        "reference passes hidden tests",
        "reference passes visible tests",
        "untouched workspace fails hidden tests",
    ]
    hidden = [execution for execution in runner.seen if execution.private_input is not None]
    assert all("test_hidden.py" not in execution.files for execution in hidden)


@pytest.mark.parametrize(
    ("judge", "broken"),
    [
        (lambda execution: False, {"reference passes hidden tests", "reference passes visible tests"}),
        (lambda execution: True, {"untouched workspace fails hidden tests"}),
    ],
)
def test_broken_promises_are_named(judge: Judge, broken: set[str]) -> None:
    result = validate_task(make_task(), FakeRunner(judge))
    assert {check.name for check in result.checks if not check.ok} == broken
    assert all(check.detail for check in result.checks if not check.ok)


def test_no_report_is_broken_and_never_a_failing_workspace() -> None:
    result = validate_task(make_task(), FakeRunner(good_only, silent=True))
    assert [(check.ok, check.broken) for check in result.checks] == [
        (False, True),
        (True, False),
        (False, True),
    ]


def test_a_task_without_tests_is_not_run() -> None:
    runner = FakeRunner(good_only)
    hidden = {"runner": "asserts", "files": {"test_hidden.py": "x = 1\n"}}
    result = validate_task(make_task(hidden=hidden), runner)
    assert (result.ok, runner.seen) == (False, [])
    assert "no test found" in failures([result])[0]


def test_results_keep_the_order_and_progress_counts_up() -> None:
    seen: list[tuple[int, int, str]] = []

    def progress(done: int, total: int, result: TaskResult) -> None:
        seen.append((done, total, result.task_id))

    tasks = [make_task(f"t{number}") for number in range(5)]
    results = validate_tasks(tasks, FakeRunner(good_only), progress, workers=3)
    assert [result.task_id for result in results] == [task.id for task in tasks]
    assert seen == [(number + 1, 5, f"t{number}") for number in range(5)]


def test_a_runner_that_cannot_start_stops_everything() -> None:
    class Broken:
        def run(self, execution: Execution) -> ExecutionResult:
            raise OSError("no bubblewrap")

    with pytest.raises(OSError, match="no bubblewrap"):
        validate_tasks([make_task("a"), make_task("b")], Broken())
