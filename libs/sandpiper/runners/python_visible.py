"""Runs visible tests against the workspace and prints a short report for the policy.

    python3 -I -S -B python_visible.py [--cpu S] [--wall S] [--pytest] TEST_FILE...

Standalone, Python 3.9 or newer. Tests and candidate share this process: the result informs the policy and
earns nothing, so there is nothing to protect. Exit status: 0 all passed, 1 any failed, 2 nothing to run.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` costs 10 ms to import
import io
import os
import sys

TYPE_CHECKING = False  # `typing` costs 20 ms to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from sandpiper.runners import minipytest, testkit  # noqa: E402

SHOWN = 3
"""Failures shown in full; the others are only counted."""
PRINTED_CHARS = 160


class OverTime(BaseException):
    """Raised by the timer inside a test; no `except Exception` of a candidate swallows it."""


class Timer:
    """Ends a test by CPU time, which a busy machine does not change, or else by wall time."""

    def __init__(self, cpu_s: float, wall_s: float) -> None:
        self._limits = ((_signal.ITIMER_PROF, cpu_s), (_signal.ITIMER_REAL, wall_s))
        self._texts = {_signal.SIGPROF: f"{cpu_s:g} s of CPU time", _signal.SIGALRM: f"{wall_s:g} s"}
        for number in self._texts:
            _signal.signal(number, self._over)

    def start(self) -> None:
        """Begin a test."""
        for timer, seconds in self._limits:
            _signal.setitimer(timer, seconds)

    def stop(self) -> None:
        """The test is over."""
        for timer, _ in self._limits:
            _signal.setitimer(timer, 0)

    def _over(self, number: int, frame: Any) -> NoReturn:
        raise OverTime(self._texts[number])


class Report:
    """What is told to the policy."""

    def __init__(self) -> None:
        self.ran = 0
        self.failures: list[tuple[str, str]] = []
        self.printed = ""
        self.stopped = False
        self.broken = False

    def text(self) -> str:
        """At most a few lines: count, first failures, what the failing code printed."""
        if self.broken:
            return f"the tests cannot run: {self.failures[-1][1]}"
        if not self.failures:
            return f"all {self.ran} tests passed" if self.ran != 1 else "the test passed"
        reasons = {reason for _, reason in self.failures}
        lines = [f"{len(self.failures)} of {self.ran} tests failed"]
        if len(reasons) == 1 and len(self.failures) > 1:
            lines.append(f"every one: {self.failures[0][1]}")
        else:
            lines += [f"{name}: {reason}" for name, reason in self.failures[:SHOWN]]
            if len(self.failures) > SHOWN:
                lines.append(f"… and {len(self.failures) - SHOWN} more")
        if self.stopped:
            lines.append("later tests were not run")
        if self.printed.strip():
            lines.append(f"printed: {testkit.cut(self.printed.strip(), PRINTED_CHARS)}")
        return "\n".join(lines)


def main(argv: list[str]) -> int:
    """Run the files; see the module's text."""
    limits, paths = {"--cpu": 2.0, "--wall": 8.0}, list(argv)
    while paths and paths[0] in limits:
        limits[paths[0]] = float(paths[1])
        paths = paths[2:]
    if paths[:1] == ["--pytest"]:
        return _run_pytest(paths[1:])
    timer = Timer(limits["--cpu"], limits["--wall"])
    sys.path.insert(0, os.getcwd())
    sys.modules.setdefault("pytest", minipytest)
    report = Report()
    for path in paths:
        _run_file(path, timer, report, several=len(paths) > 1)
        if report.stopped:
            break
    if not report.ran:
        print("no tests found")
        return 2
    print(report.text())
    return 1 if report.failures else 0


def _run_file(path: str, timer: Timer, report: Report, several: bool) -> None:
    with open(path, encoding="utf-8") as file:
        module = testkit.TestModule(path, file.read())
    prefix = f"{path}::" if several else ""
    if not _attempt(path, module, module.execute, timer, report):
        report.ran += 1
        report.broken = report.stopped = True
        return
    for name, function in module.cases():
        if report.stopped:
            return
        report.ran += 1
        _attempt(prefix + name, module, function, timer, report)


def _attempt(
    name: str, module: testkit.TestModule, function: Callable[[], Any], timer: Timer, report: Report
) -> bool:
    """Call `function` under the timer with its output captured; note a failure. True when it passed."""
    real, captured = sys.stdout, io.StringIO()
    sys.stdout = captured
    try:
        timer.start()
        function()
    except OverTime as error:
        reason, report.stopped = f"still running after {error}{_place(error)}", True
    except BaseException as error:  # SystemExit of a candidate is a failed test too
        reason = module.explain(error) + _place(error)
    else:
        return True
    finally:
        timer.stop()
        sys.stdout = real
    report.failures.append((name, reason))
    report.printed = report.printed or captured.getvalue()
    return False


def _place(error: BaseException) -> str:
    """` at solution.py line 3: ...`: the innermost line of the workspace that is not a test's."""
    found, step = "", error.__traceback__
    while step is not None:
        path = step.tb_frame.f_code.co_filename
        if path.startswith(os.getcwd() + os.sep):
            name = os.path.relpath(path)
            found = f" at {name} line {step.tb_lineno}: `{_source_line(path, step.tb_lineno)}`"
        step = step.tb_next
    return found


def _source_line(path: str, number: int) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return ""
    return testkit.cut(lines[number - 1].strip()) if number <= len(lines) else ""


def _run_pytest(paths: list[str]) -> int:
    """Hand over to the image's own pytest; its failure lines are short enough as they are."""
    arguments = ["-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir=."]
    sys.path.insert(0, os.getcwd())
    try:
        import pytest  # noqa: PLC0415 - only images with pytest have it
    except ImportError:
        print("this image has no pytest", file=sys.stderr)
        return 2
    return int(pytest.main([*arguments, *paths]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
