"""Validates tasks by running them: every reference must pass, the untouched workspace must fail.

`validate_tasks(tasks, LocalRunner(), on_progress)` is what `sandpiper tasks validate` does; any `Runner`
does, so that the same checks run on the sandbox-executor's backends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from sandpiper.tasks.languages import hidden_argv, visible_argv
from sandpiper.tasks.local import Execution, ExecutionResult
from sandpiper.tasks.model import Files, Task
from sandpiper.tasks.plan import (
    Report,
    ReportError,
    expected_tests,
    grading_files,
    grading_limits,
    private_plan,
    read_report,
)

NONCE = "validate"
"""No secret: whoever validates a task already holds its tests and its reference."""
OUTPUT_CHARS = 400


class Runner(Protocol):
    """Runs one command in a fresh sandbox."""

    def run(self, execution: Execution) -> ExecutionResult: ...


@dataclass(frozen=True)
class Check:
    """One run of one task. `ok` says whether it went as it must, `broken` that no verdict came of it."""

    name: str
    ok: bool
    seconds: float
    detail: str = ""
    broken: bool = False


@dataclass(frozen=True)
class TaskResult:
    """All checks of one task."""

    task_id: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Every check went as it must."""
        return all(check.ok for check in self.checks)


Progress = Callable[[int, int, TaskResult], None]
"""Called with (done, total, newest result), from the calling thread."""


def validate_tasks(
    tasks: Sequence[Task],
    runner: Runner,
    on_progress: Progress | None = None,
    *,
    workers: int = 2,
) -> list[TaskResult]:
    """Results in the order of `tasks`. Raises OSError where no sandbox can be started at all."""
    results: list[TaskResult] = []
    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            for result in pool.map(lambda task: validate_task(task, runner), tasks):
                results.append(result)
                if on_progress is not None:
                    on_progress(len(results), len(tasks), result)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results


def validate_task(task: Task, runner: Runner) -> TaskResult:
    """Run the three checks of one task."""
    try:
        expected_tests(task.hidden)
    except ValueError as error:
        return TaskResult(task.id, (Check("hidden tests are found", False, 0.0, str(error)),))
    return TaskResult(
        task.id,
        (
            _hidden(task, runner, "reference passes hidden tests", task.workspace | task.reference, True),
            _visible(task, runner),
            _hidden(task, runner, "untouched workspace fails hidden tests", task.workspace, False),
        ),
    )


def grade(task: Task, runner: Runner, submission: Files) -> tuple[Report, ExecutionResult]:
    """Grade the files of `submission`. Raises ReportError where no report came."""
    execution = Execution(
        hidden_argv(task),
        grading_files(task, submission),
        grading_limits(task),
        private_plan(task, NONCE),
    )
    result = runner.run(execution)
    return read_report(result.channel, NONCE, expected_tests(task.hidden)), result


def _hidden(task: Task, runner: Runner, name: str, files: Files, must_pass: bool) -> Check:
    try:
        report, result = grade(task, runner, files)
    except ReportError as error:
        return Check(name, False, 0.0, f"no report: {error}", broken=True)
    passed = report.passed and result.exit_code == 0
    failing = [f"{test.id}: {test.message}" for test in report.tests if test.status != "passed"]
    detail = "; ".join([*(f"no {path}" for path in report.missing), *failing[:3]]) if must_pass else ""
    if not must_pass and passed:
        detail = "it passes: the tests demand nothing"
    return Check(name, passed is must_pass, result.seconds, detail)


def _visible(task: Task, runner: Runner) -> Check:
    """The reference must pass what the policy is shown."""
    files = task.workspace | task.reference | task.visible.files
    result = runner.run(Execution(visible_argv(task), files, grading_limits(task)))
    ok = result.exit_code == 0
    detail = "" if ok else ("timed out" if result.timed_out else result.output[-OUTPUT_CHARS:])
    return Check("reference passes visible tests", ok, result.seconds, detail)


def failures(results: Iterable[TaskResult]) -> list[str]:
    """One line per check that did not go as it must."""
    return [
        f"{result.task_id}: {check.name}: {check.detail}"
        for result in results
        for check in result.checks
        if not check.ok
    ]
