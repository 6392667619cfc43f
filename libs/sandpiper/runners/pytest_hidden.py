"""Runs a plan's hidden tests under the image's own pytest, inside the trusted process.

The files that pytest collects are empty; their content stays in memory. No configuration, conftest or
plugin is loaded from any disk: a conftest of the task comes from memory too. Skipped, xfailed and
deselected are not passed.
"""

from __future__ import annotations

import ast
import os
import tempfile
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.assertion.rewrite import rewrite_asserts

if TYPE_CHECKING:
    from sandpiper.runners.grading import Run

OPTIONS = ("-q", "--noconftest", "-c", "/dev/null", "-p", "no:cacheprovider", "-p", "no:faulthandler")
CONFTEST = "conftest.py"
PASSED = {"status": "passed", "kind": "", "message": ""}
SKIPPED = {"status": "missing", "kind": "", "message": "skipped or xfailed"}


def run(run: Run) -> None:
    """Fill `run.results`. Raises RuntimeError where pytest itself broke."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with tempfile.TemporaryDirectory(prefix="tests-") as folder:
        for path in run.plan["test_files"]:
            target = os.path.join(folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "x", encoding="utf-8"):
                pass
        names = [os.path.join(folder, path) for path in run.plan["test_files"]]
        plugins: list[Any] = [_Plugin(run, folder)]
        if CONFTEST in run.plan["files"]:
            plugins.append(_module(run, CONFTEST, "conftest"))
        status = pytest.main([*OPTIONS, f"--rootdir={folder}", *names], plugins=plugins)
    if status in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR):
        raise RuntimeError(f"pytest ended with {status!r}")


def _module(run: Run, path: str, name: str) -> ModuleType:
    """Execute one file of the plan, with pytest's own assertion rewriting."""
    source = run.plan["files"][path].encode()
    tree: Any = ast.parse(source, path)
    rewrite_asserts(tree, source, path)
    module = ModuleType(name)
    module.__file__ = path
    module.__dict__["open"] = run.open
    exec(compile(tree, path, "exec"), module.__dict__)
    return module


class _MemoryModule(pytest.Module):
    """A test module whose source is in memory."""

    run: Run
    relative: str

    def _getobj(self) -> ModuleType:
        self.run.arm()
        return _module(self.run, self.relative, os.path.splitext(os.path.basename(self.relative))[0])


class _Plugin:
    """Collects from memory, gives each test its fork of the candidate, and notes the verdicts."""

    def __init__(self, run: Run, folder: str) -> None:
        self._run, self._folder = run, folder
        self._error: BaseException | None = None

    def pytest_pycollect_makemodule(self, module_path: Any, parent: Any) -> Any:
        """pytest's hook"""
        made = _MemoryModule.from_parent(parent, path=module_path)
        made.run, made.relative = self._run, os.path.relpath(module_path, self._folder)
        return made

    def pytest_collectreport(self, report: Any) -> None:
        """A file that does not load fails all tests that are expected of it."""
        if report.failed and report.nodeid:
            lines = str(report.longrepr).strip().splitlines()
            self._run.fail_file(report.nodeid, self._run.verdict_of(self._error, lines[-1] if lines else ""))

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        """The exception itself comes only here; the collect report has its text."""
        self._error = call.excinfo.value

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Around set-up, call and tear-down of one test."""
        self._run.begin()
        yield
        self._run.session.finish()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        """Note what each phase gave; the worst of all phases and cases counts."""
        outcome = yield
        report = outcome.get_result()
        file = os.path.relpath(item.path, self._folder)
        test_id = f"{file}::{item.nodeid.partition('::')[2].partition('[')[0]}"
        error = call.excinfo.value if call.excinfo is not None else None
        text = call.excinfo.exconly() if call.excinfo is not None else ""
        if report.skipped or hasattr(report, "wasxfail"):
            self._run.note(test_id, SKIPPED, call.duration)
        elif report.failed or self._run.session.aborted:
            self._run.note(test_id, self._run.verdict_of(error, text), call.duration)
        elif report.when == "call":
            self._run.note(test_id, PASSED, call.duration)
