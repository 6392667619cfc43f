"""What grading is made of: expected tests, files of the sandbox, the private plan, the report."""

from __future__ import annotations

from typing import Any

import pytest

from sandpiper.runners import codec
from sandpiper.tasks.languages import LANGUAGES, hidden_argv, syntax_argv, test_files, visible_argv
from sandpiper.tasks.model import Files, Task, TestSpec
from sandpiper.tasks.plan import (
    ReportError,
    candidate_modules,
    expected_tests,
    grading_files,
    grading_limits,
    private_plan,
    read_report,
)


def spec(files: Files, runner: Any = "asserts") -> TestSpec:
    return TestSpec(runner=runner, files=files)


def make_task(**changes: Any) -> Task:
    data: dict[str, Any] = {
        "id": "t",
        "family": "t",
        "language": "python",
        "instruction": "x",
        "workspace": {"solution.py": "stub", "lib/util.py": "u", "data.csv": "1", "lib/__init__.py": ""},
        "solution_path": "solution.py",
        "visible": {"runner": "asserts", "files": {"test_visible.py": "def test(): pass\n"}},
        "hidden": {"runner": "asserts", "files": {"test_hidden.py": "def test(): pass\n", "table.txt": "1"}},
        "reference": {"solution.py": "good", "extra.py": "not graded"},
    }
    return Task.model_validate(data | changes)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def test_a(): pass\ndef helper(): pass\nasync def test_b(): pass\n", ["test_a", "test_b"]),
        ("class TestX:\n    def test_m(self): pass\n    def other(self): pass\n", ["TestX::test_m"]),
        ("if True:\n    def test_hidden(): pass\ndef test_top(): pass\n", ["test_top"]),
    ],
)
def test_python_tests_are_found_without_running(source: str, names: list[str]) -> None:
    assert expected_tests(spec({"test_x.py": source})) == tuple(f"test_x.py::{name}" for name in names)


def test_javascript_tests_are_found_without_running() -> None:
    source = (
        "test('one', () => {});\nit(\"two 'quoted'\", () => {});\ndescribe(`three`, () => {\n"
        "  it('inner', () => {});\n});\ntest.skip('skipped', () => {});\ntest(name, () => {});\n"
    )
    found = expected_tests(spec({"a.test.js": source}, "node"))
    assert found == ("a.test.js::one", "a.test.js::two 'quoted'", "a.test.js::three")


@pytest.mark.parametrize(
    "source", ["x = 1\n", "def test(:\n", "def test_a(): pass\ndef test_a(): pass\n", "\0"]
)
def test_files_without_usable_tests_are_refused(source: str) -> None:
    with pytest.raises(ValueError, match="test"):
        expected_tests(spec({"test_x.py": source}))


def test_files_that_hold_tests() -> None:
    files = {
        "test_a.py": "",
        "conftest.py": "",
        "helper.py": "",
        "b_test.py": "",
        "d.txt": "",
        "c.test.js": "",
    }
    assert test_files(spec(files)) == ("b_test.py", "c.test.js", "test_a.py")
    assert test_files(spec({"checks.py": "", "d.txt": ""})) == ("checks.py",)


def test_grading_files_come_from_the_task_but_for_the_artifacts() -> None:
    task = make_task()
    assert set(grading_files(task)) == {"lib/util.py", "data.csv", "lib/__init__.py"}
    submitted = grading_files(task, {"solution.py": "mine", "lib/util.py": "changed", "conftest.py": "evil"})
    assert submitted["solution.py"] == "mine"
    assert submitted["lib/util.py"] == "u"
    assert "conftest.py" not in submitted


def test_the_plan_says_what_is_the_candidates() -> None:
    task = make_task()
    assert candidate_modules(task) == {
        "solution": "solution.py",
        "lib.util": "lib/util.py",
        "lib": "lib/__init__.py",
    }
    plan = codec.decode(private_plan(task, "n"))
    assert plan["nonce"] == "n"
    assert plan["expected"] == ["test_hidden.py::test"]
    assert plan["artifacts"] == ["solution.py"]
    assert plan["files"]["table.txt"] == "1"
    assert plan["test_cpu_s"] <= plan["cpu_s"] <= task.limits.cpu_s


def test_limits_leave_room_for_the_trusted_side() -> None:
    task = make_task()
    limits = grading_limits(task)
    assert limits.wall_s > task.limits.wall_s
    assert limits.cpu_s > task.limits.cpu_s
    assert limits.memory_mb > task.limits.memory_mb
    assert limits.pids > task.limits.pids
    assert limits.disk_mb == task.limits.disk_mb


def test_argv() -> None:
    task = make_task()
    assert visible_argv(task)[-5:] == ("--cpu", "2", "--wall", "8", "test_visible.py")
    assert hidden_argv(task)[-1].endswith("python_hidden.py")
    assert "-S" in hidden_argv(task)
    assert syntax_argv(task, "solution.py")[-1] == "solution.py"
    for language in LANGUAGES.values():
        assert set(language.visible) == set(language.hidden)


def report(**changes: Any) -> bytes:
    test = {"id": "f::a", "status": "passed", "kind": "", "message": "", "seconds": 0.0}
    data = {"nonce": "n", "tests": [test], "missing": []}
    test |= {key: value for key, value in changes.items() if key in test}
    data |= {key: value for key, value in changes.items() if key in data}
    return codec.encode(data)


def test_a_report_is_read() -> None:
    found = read_report(report(), "n", ["f::a"])
    assert found.passed
    assert not read_report(report(missing=["x"]), "n", ["f::a"]).passed
    assert not read_report(report(status="missing"), "n", ["f::a"]).passed


@pytest.mark.parametrize(
    ("channel", "expected"),
    [
        (b"", ["f::a"]),
        (report(nonce="m"), ["f::a"]),
        (report(nonce=True), ["f::a"]),
        (report(tests=[]), ["f::a"]),
        (report(tests="x"), ["f::a"]),
        (report(), ["f::b"]),
        (report(), ["f::a", "f::b"]),
        (report(status="great"), ["f::a"]),
        (report(kind=3), ["f::a"]),
        (report(seconds="x"), ["f::a"]),
        (report() + b"N", ["f::a"]),
        (report() * 2, ["f::a"]),
    ],
)
def test_other_reports_are_refused(channel: bytes, expected: list[str]) -> None:
    with pytest.raises(ReportError):
        read_report(channel, "n", expected)


def test_a_test_that_only_running_found_counts_too() -> None:
    tests = [
        {"id": name, "status": status, "kind": "", "message": "", "seconds": 0.0}
        for name, status in (("f::a", "passed"), ("f::more", "failed"))
    ]
    found = read_report(codec.encode({"nonce": "n", "tests": tests, "missing": []}), "n", ["f::a"])
    assert len(found.tests) == 2
    assert not found.passed
