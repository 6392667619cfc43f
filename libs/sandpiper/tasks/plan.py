"""What grading one submission means: files, command, private plan, and how to read what comes back.

Shared by the reward-grader and by `validate`, so that a task is validated by exactly what will grade it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from sandpiper.runners import codec
from sandpiper.tasks.languages import test_files
from sandpiper.tasks.model import Files, Task, TaskLimits, TestSpec

CLASS_MAKERS = {"namedtuple", "NamedTuple", "make_dataclass", "new_class", "Enum"}
MAX_REPORT_BYTES = 4 * 1024 * 1024
STATUSES = ("passed", "failed", "error", "missing")
CPU_SHARE, TEST_CPU_SHARE = 0.8, 0.4
"""Of the CPU limit: what all tests, and what one test, may use of it. Looping is told by CPU time, so that a
busy machine changes no verdict; only sleeping is told by wall time.
"""
OVERHEAD_WALL_S = 5.0
OVERHEAD_CPU_S = {"python": 1.0, "javascript": 3.0}
OVERHEAD_MEMORY_MB = {"python": 64, "javascript": 192}
"""For the trusted side: a second interpreter; node adds about 60 MB each."""
OVERHEAD_PIDS = {"python": 8, "javascript": 40}
"""node has about eleven threads before the candidate starts any."""


class ReportError(Exception):
    """The report is absent or not the trusted runner's. Says nothing about the candidate."""


@dataclass(frozen=True)
class HiddenTest:
    """One expected test and how it ended."""

    id: str
    status: str
    kind: str
    message: str
    seconds: float


@dataclass(frozen=True)
class Report:
    """What the trusted runner said."""

    tests: tuple[HiddenTest, ...]
    missing: tuple[str, ...]
    """Artifacts that the workspace does not have."""

    @property
    def passed(self) -> bool:
        """Every expected test passed, and there was one."""
        return bool(self.tests) and not self.missing and all(t.status == "passed" for t in self.tests)


def expected_tests(spec: TestSpec) -> tuple[str, ...]:
    """Ids `<file>::<name>` of the tests in `spec`, read from the source without running it.

    Raises:
        ValueError: a file does not parse, or none holds a test.
    """
    found: list[str] = []
    for path in test_files(spec):
        names = _python_tests if path.endswith(".py") else _javascript_tests
        found += [f"{path}::{name}" for name in names(spec.files[path])]
    if not found:
        raise ValueError("no test found")
    doubled = sorted({name for name in found if found.count(name) > 1})
    if doubled:
        raise ValueError(f"tests of one name: {doubled}")
    return tuple(found)


def grading_files(task: Task, submission: Files | None = None) -> Files:
    """Files of the fresh sandbox beside the restored artifacts: the task's workspace, then `submission`.

    With `submission` None the artifacts come from a snapshot; what the task's workspace has at their paths
    stays out, so that a deleted artifact is seen as missing. Hidden tests are not among them: they travel in
    the plan.
    """
    graded = set(task.graded_paths())
    files = {path: text for path, text in task.workspace.items() if path not in graded}
    if submission is None:
        return files
    return files | {path: text for path, text in submission.items() if path in graded}


def private_plan(task: Task, nonce: str) -> bytes:
    """The private input of the hidden runner."""
    limits = task.limits
    return codec.encode(
        {
            "nonce": nonce,
            "runner": task.hidden.runner,
            "files": dict(task.hidden.files),
            "test_files": list(test_files(task.hidden)),
            "expected": list(expected_tests(task.hidden)),
            "modules": candidate_modules(task),
            "objects": answers_with_objects(task),
            "artifacts": list(task.graded_paths()),
            "wall_s": limits.wall_s,
            "cpu_s": CPU_SHARE * limits.cpu_s,
            "test_cpu_s": TEST_CPU_SHARE * limits.cpu_s,
        },
        limit=16 * codec.MAX_BYTES,
    )


def answers_with_objects(task: Task) -> bool:
    """True when the reference makes classes, so that tests need methods and operators of its objects.

    Elsewhere an object in place of a number would decide comparisons itself: `abs(x - 5) < 0.1`.
    """
    return any(_makes_classes(text) for path, text in task.reference.items() if path.endswith(".py"))


def _makes_classes(source: str) -> bool:
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):  # a broken reference is the validator's business
        return False
    return any(isinstance(node, ast.ClassDef) or _calls_class_maker(node) for node in nodes)


def _calls_class_maker(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return called in CLASS_MAKERS or (called == "type" and len(node.args) == 3)


def grading_limits(task: Task) -> TaskLimits:
    """The task's limits plus what the trusted side itself needs."""
    limits = task.limits
    return limits.model_copy(
        update={
            "wall_s": limits.wall_s + OVERHEAD_WALL_S,
            "cpu_s": limits.cpu_s + OVERHEAD_CPU_S[task.language],
            "memory_mb": limits.memory_mb + OVERHEAD_MEMORY_MB[task.language],
            "pids": limits.pids + OVERHEAD_PIDS[task.language],
        }
    )


def candidate_modules(task: Task) -> dict[str, str]:
    """Module name -> path of everything that runs on the candidate's side."""
    paths: Sequence[str] = [*task.workspace, *task.graded_paths()]
    hidden = set(task.hidden.files)
    if task.language == "javascript":
        return {path: path for path in paths if path not in hidden}
    return {_module(path): path for path in paths if path.endswith(".py") and path not in hidden}


def read_report(channel: bytes, nonce: str, expected: Sequence[str]) -> Report:
    """The report in what came over the private channel.

    Raises:
        ReportError: absent, malformed, without the nonce, or about other tests than `expected`.
    """
    if not channel:
        raise ReportError("nothing came over the private channel")
    try:
        data = codec.decode(channel[: MAX_REPORT_BYTES + 1])
    except codec.CodecError as error:
        raise ReportError(str(error)) from None
    if not isinstance(data, dict) or data.get("nonce") != nonce:
        raise ReportError("the report does not carry the nonce")
    tests = tuple(_test(item) for item in _list(data.get("tests")))
    ids = [test.id for test in tests]
    if ids[: len(expected)] != list(expected) or len(set(ids)) != len(ids):
        raise ReportError("the report is not about the expected tests")
    return Report(tests, tuple(str(path) for path in _list(data.get("missing"))))


def _test(item: Any) -> HiddenTest:
    try:
        seconds = float(item["seconds"])
        test = HiddenTest(item["id"], item["status"], item["kind"], item["message"], seconds)
    except (TypeError, KeyError, ValueError) as error:
        raise ReportError(f"malformed test result: {error!r}") from None
    words = (test.id, test.status, test.kind, test.message)
    if not all(isinstance(word, str) for word in words) or test.status not in STATUSES:
        raise ReportError("malformed test result")
    return replace(test, kind=_without_surrogates(test.kind), message=_without_surrogates(test.message))


def _without_surrogates(text: str) -> str:
    """The candidate's words without lone surrogates, which no JSON record can hold."""
    return text.encode("utf-8", "replace").decode()


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ReportError("malformed report")
    return value


def _module(path: str) -> str:
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _python_tests(source: str) -> list[str]:
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"hidden tests do not parse: {error}") from None
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            found.append(node.name)
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            methods = [m.name for m in node.body if isinstance(m, ast.FunctionDef)]
            found += [f"{node.name}::{name}" for name in methods if name.startswith("test")]
    return found


JAVASCRIPT_TEST = re.compile(r"""^(?:test|it|describe|suite)\(\s*(['"`])((?:\\.|(?!\1).)+)\1""", re.MULTILINE)


def _javascript_tests(source: str) -> list[str]:
    """Top-level `test('name', …)`, `it`, `describe` or `suite` with a literal name."""
    return [match.group(2) for match in JAVASCRIPT_TEST.finditer(source)]
