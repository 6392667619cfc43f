"""The trusted run of a plan: test modules from memory, one verdict per expected test, a time budget for all.

Plan: nonce, files {path: text}, test_files [path], expected [id], modules {module: path}, artifacts [path],
wall_s, cpu_s, test_cpu_s. Report: nonce, tests [{id, status, kind, message, seconds}], missing [path].
"""

from __future__ import annotations

import io
import os
import stat
import sys
import time

from sandpiper.runners import minipytest, testkit
from sandpiper.runners.crossing import CandidateError
from sandpiper.runners.frames import python_argv
from sandpiper.runners.imports import Finder, overlay_open
from sandpiper.runners.remote import Abort, Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MESSAGE_CHARS = 600
SHORTEST_S = 0.5
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/tmp"}


def run(plan: dict[str, Any]) -> dict[str, Any]:
    """Run every expected test; see the module's text for both shapes."""
    run = Run(plan)
    real, sys.stdout = sys.stdout, io.StringIO()  # tests may print what the candidate must not read
    try:
        if plan["runner"] == "pytest":
            from sandpiper.runners import pytest_hidden  # noqa: PLC0415 - only images with pytest have it

            pytest_hidden.run(run)
        else:
            sys.modules["pytest"] = minipytest
            for path in plan["test_files"]:
                run.file(path)
    finally:
        run.session.close()
        sys.stdout = real
    return {"nonce": plan["nonce"], "tests": run.report(), "missing": missing_artifacts(plan["artifacts"])}


class Run:
    """State of one run: budget, session, results so far."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.results: dict[str, dict[str, Any]] = {}
        self.end: float | None = None
        """When the time for all tests is used up; it begins with the first test file."""
        here = os.path.dirname(os.path.abspath(__file__))
        argv = python_argv(os.path.join(here, "candidate.py"))
        self.session = Session(argv, dict(ENVIRONMENT), plan["test_cpu_s"], plan["objects"])
        self.open = overlay_open(plan["files"])
        sys.meta_path.insert(0, Finder(self.session, plan["modules"], plan["files"]))

    def file(self, path: str) -> None:
        """Load one test file and run its tests."""
        module = testkit.TestModule(path, self.plan["files"][path], {"open": self.open})
        self.arm()
        failure = self._attempt(module, module.execute)
        if failure is not None:
            self.fail_file(path, failure)
            return
        for name, functions in _by_name(module).items():
            self.results[f"{path}::{name}"] = self._test(module, functions)

    def arm(self) -> None:
        """Before a test file is loaded: its imports have a test's time."""
        if self.end is None:
            self.end = time.monotonic() + self.plan["wall_s"]
        self.session.deadline, self.session.aborted = self._deadline(), None

    def begin(self) -> None:
        """Before a test: a fresh fork of the candidate, with a test's time."""
        self.session.begin(self._deadline())

    def fail_file(self, path: str, failure: dict[str, Any]) -> None:
        """Every test expected of `path` has failed alike."""
        for test_id in self.plan["expected"]:
            if test_id.startswith(f"{path}::"):
                self.results[test_id] = {**failure, "seconds": 0.0}

    def note(self, test_id: str, verdict: dict[str, Any], seconds: float) -> None:
        """Add one part's verdict to a test: the first that is no pass stays."""
        known = self.results.get(test_id)
        if known is None or known["status"] == "passed":
            self.results[test_id] = {**verdict, "seconds": seconds + (known or {"seconds": 0.0})["seconds"]}

    def verdict_of(self, error: BaseException | None, message: str) -> dict[str, Any]:
        """The failure that `error` means, unless the candidate was lost under it."""
        if self.session.aborted is not None:
            kind, message = self.session.aborted
            return _result("failed" if kind == "timeout" else "error", kind, message, 0.0)
        return _failure(error, message)

    def report(self) -> list[dict[str, Any]]:
        """One entry per expected test, in the plan's order, then tests that only running could find."""
        absent = _result("missing", "", "the test did not run", 0.0)
        more = [test_id for test_id in self.results if test_id not in self.plan["expected"]]
        return [
            {"id": test_id, **self.results.get(test_id, absent)}
            for test_id in [*self.plan["expected"], *more]
        ]

    def _test(self, module: testkit.TestModule, cases: list[Callable[[], Any]]) -> dict[str, Any]:
        """One test, in one fork of the candidate: every case must pass, and there must be one."""
        started = time.monotonic()
        if self._spent():
            return _result("failed", "timeout", "not run: the time for all tests is used up", 0.0)
        if not cases:
            return _result("missing", "", "no case", 0.0)

        def test() -> None:
            self.begin()
            for case in cases:
                case()

        failure = self._attempt(module, test)
        self.session.finish()
        return {**(failure or _result("passed", "", "", 0.0)), "seconds": time.monotonic() - started}

    def _attempt(self, module: testkit.TestModule, function: Callable[[], Any]) -> dict[str, Any] | None:
        """None when `function` returned and the candidate answered every call; else the failure."""
        try:
            function()
        except Abort:
            pass
        except (Exception, SystemExit) as error:
            return self.verdict_of(error, module.explain(error))
        return None if self.session.aborted is None else self.verdict_of(None, "")

    def _deadline(self) -> float:
        """Half of the wall time that is left, so that one test that sleeps leaves some to the others."""
        now = time.monotonic()
        left = (self.end if self.end is not None else now + self.plan["wall_s"]) - now
        return now + max(left / 2, min(left, SHORTEST_S))

    def _spent(self) -> bool:
        """The time for all tests is used up, wall or CPU."""
        wall = self.end is not None and time.monotonic() >= self.end
        return wall or self.session.cpu_used() >= self.plan["cpu_s"]


def _by_name(module: testkit.TestModule) -> dict[str, list[Callable[[], Any]]]:
    """Cases by test: a parametrised test is one test with several cases."""
    found: dict[str, list[Callable[[], Any]]] = {}
    for name, function in module.cases():
        found.setdefault(name.partition("[")[0], []).append(function)
    return found


def _failure(error: BaseException | None, message: str) -> dict[str, Any]:
    candidates = getattr(error, "from_candidate", "")
    if type(error) is CandidateError and candidates:
        message = candidates
    if isinstance(error, SyntaxError):
        return _result("error", "syntax", message, 0.0)
    if isinstance(error, AssertionError) and not candidates:
        return _result("failed", "assertion", message, 0.0)
    return _result("error", "exception", message, 0.0)


def _result(status: str, kind: str, message: str, seconds: float) -> dict[str, Any]:
    return {"status": status, "kind": kind, "message": message[:MESSAGE_CHARS], "seconds": seconds}


def missing_artifacts(paths: list[str]) -> list[str]:
    """Artifacts that are not regular files now; a link is not followed."""

    def regular(path: str) -> bool:
        try:
            return stat.S_ISREG(os.lstat(path).st_mode)
        except OSError:
            return False

    return [path for path in paths if not regular(path)]
