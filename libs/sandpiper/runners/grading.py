"""The trusted run of a plan: test modules from memory, one verdict per expected test, a time budget for all.

Plan: nonce, files {path: text}, test_files [path], expected [id], modules {module: path}, artifacts [path],
test_s, total_s. Report: nonce, tests [{id, status, kind, message, seconds}], missing [path].
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
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/tmp"}


def run(plan: dict[str, Any]) -> dict[str, Any]:
    """Run every expected test; see the module's text for both shapes."""
    run = Run(plan)
    real, sys.stdout = sys.stdout, io.StringIO()  # tests may print what the candidate must not read
    try:
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
        self.end = time.monotonic() + plan["total_s"]
        here = os.path.dirname(os.path.abspath(__file__))
        self.session = Session(python_argv(os.path.join(here, "candidate.py")), dict(ENVIRONMENT))
        sys.modules.setdefault("pytest", minipytest)
        sys.meta_path.insert(0, Finder(self.session, plan["modules"], plan["files"]))

    def file(self, path: str) -> None:
        """Load one test file and run its tests."""
        namespace = {"open": overlay_open(self.plan["files"])}
        module = testkit.TestModule(path, self.plan["files"][path], namespace)
        self.session.deadline, self.session.aborted = self._deadline(), None
        failure = self._attempt(module, module.execute)
        cases = _by_name(module) if failure is None else {}
        for test_id in self.plan["expected"]:
            if failure is not None and test_id.startswith(f"{path}::"):
                self.results[test_id] = {**failure, "seconds": 0.0}
        for name, functions in cases.items():
            self.results[f"{path}::{name}"] = self._test(module, functions)

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
        if started >= self.end:
            return _result("failed", "timeout", "not run: the time for all tests is used up", 0.0)
        if not cases:
            return _result("missing", "", "no case", 0.0)

        def test() -> None:
            self.session.begin(self._deadline())
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
            if self.session.aborted is None:
                return _failure(module, error)
        if self.session.aborted is None:
            return None
        kind, message = self.session.aborted
        return _result("failed" if kind == "timeout" else "error", kind, message, 0.0)

    def _deadline(self) -> float:
        limit = self.plan["test_s"]
        return float(min(time.monotonic() + limit, self.end))


def _by_name(module: testkit.TestModule) -> dict[str, list[Callable[[], Any]]]:
    """Cases by test: a parametrised test is one test with several cases."""
    found: dict[str, list[Callable[[], Any]]] = {}
    for name, function in module.cases():
        found.setdefault(name.partition("[")[0], []).append(function)
    return found


def _failure(module: testkit.TestModule, error: BaseException) -> dict[str, Any]:
    name = getattr(error, "from_candidate", "")
    message = module.explain(error)
    if type(error) is CandidateError and name:
        message = name
    if isinstance(error, SyntaxError):
        return _result("error", "syntax", message, 0.0)
    if isinstance(error, AssertionError) and not name:
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
