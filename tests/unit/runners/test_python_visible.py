"""What the policy is told about its visible tests: short, and with the values that matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.runners.direct import make_task, run_visible

TESTS = """
import pytest
from solution import add, work


def test_add():
    assert add(1, 2) == 3


def test_zero():
    assert add(0, 0) == 0


@pytest.mark.parametrize("a,b", [(1, 1), (2, 5)])
def test_many(a, b):
    assert add(a, b) == pytest.approx(a + b)


def test_work():
    assert work([3, 1]) in ([1, 3],)


def test_raises():
    with pytest.raises(ValueError):
        work(None)
"""
GOOD = """
def add(a, b):
    return a + b


def work(xs):
    if xs is None:
        raise ValueError("no list")
    return sorted(xs)
"""


def visible(folder: Path, solution: str, tests: str = TESTS) -> tuple[int, str]:
    task = make_task("def test(): pass", visible={"runner": "asserts", "files": {"test_visible.py": tests}})
    raw = run_visible(task, folder, solution)
    return raw.code, raw.output


def test_all_passed(tmp_path: Path) -> None:
    assert visible(tmp_path, GOOD) == (0, "all 6 tests passed\n")


def test_failure_shows_what_was_got_and_expected(tmp_path: Path) -> None:
    code, text = visible(tmp_path, GOOD.replace("a + b", "a - b").replace("return sorted", "return 1 / 0 #"))
    assert code == 1
    assert text.startswith("4 of 6 tests failed\ntest_add: assert add(1, 2) == 3: got -1, expected 3\n")
    assert "… and 1 more" in text
    assert len(text) < 500


def test_exception_names_the_line_of_the_solution(tmp_path: Path) -> None:
    code, text = visible(tmp_path, GOOD.replace("return sorted(xs)", "return xs[7]"))
    assert code == 1
    assert "test_work: IndexError: list index out of range" in text
    assert "at solution.py line 9: `return xs[7]`" in text


def test_syntax_error_is_told_once(tmp_path: Path) -> None:
    code, text = visible(tmp_path, "def add(a, b)\n    return a\n")
    assert code == 1
    assert text.count("\n") == 1
    assert "SyntaxError" in text
    assert "solution.py line 1: `def add(a, b)`" in text


def test_missing_name_and_missing_file(tmp_path: Path) -> None:
    assert "cannot import name 'work'" in visible(tmp_path, "def add(a, b): return a + b\n")[1]
    (tmp_path / "solution.py").unlink()
    task = make_task("def test(): pass", visible={"runner": "asserts", "files": {"test_visible.py": TESTS}})
    assert "No module named 'solution'" in run_visible(task, tmp_path, {}).output


def test_endless_loop_is_named(tmp_path: Path) -> None:
    task = make_task(
        "def test(): pass",
        visible={
            "runner": "asserts",
            "files": {"test_visible.py": "from solution import f\ndef test_f(): f()\n"},
        },
        limits={"wall_s": 60, "cpu_s": 1},
    )
    raw = run_visible(task, tmp_path, "def f():\n    while True:\n        pass\n")
    assert raw.code == 1
    assert "test_f: still running after 0.4 s of CPU time" in raw.output
    assert "at solution.py line" in raw.output


def test_sleeping_is_ended_by_wall_time(tmp_path: Path) -> None:
    tests = "from solution import f\ndef test_f(): f()\n"
    task = make_task(
        "def test(): pass",
        visible={"runner": "asserts", "files": {"test_visible.py": tests}},
        limits={"wall_s": 1, "cpu_s": 1},
    )
    raw = run_visible(task, tmp_path, "import time\ndef f():\n    time.sleep(60)\n")
    assert "test_f: still running after 0.8 s at solution.py line 3" in raw.output


@pytest.mark.parametrize(
    "solution", ["import sys\nsys.exit(0)\n", "raise SystemExit\n", "def f(): raise KeyboardInterrupt\n"]
)
def test_exits_are_failures(tmp_path: Path, solution: str) -> None:
    code, text = visible(tmp_path, solution, "from solution import f\ndef test_f(): f()\n")
    assert code == 1
    assert "passed" not in text


def test_prints_are_captured_and_cut(tmp_path: Path) -> None:
    solution = "def f():\n    print('noise ' * 1000)\n    return 1\n"
    code, text = visible(tmp_path, solution, "from solution import f\ndef test_f(): assert f() == 2\n")
    assert code == 1
    assert "printed: noise" in text
    assert len(text) < 400


def test_no_tests_is_not_a_pass(tmp_path: Path) -> None:
    assert visible(tmp_path, GOOD, "x = 1\n") == (2, "no tests found\n")


def test_several_files_name_the_file(tmp_path: Path) -> None:
    files = {"test_a.py": "def test_x(): assert 1 == 2\n", "test_b.py": "def test_y(): pass\n"}
    task = make_task("def test(): pass", visible={"runner": "asserts", "files": files})
    assert "test_a.py::test_x: assert 1 == 2: got 1, expected 2" in run_visible(task, tmp_path, GOOD).output


def test_workspace_module_shadows_no_runner_module(tmp_path: Path) -> None:
    solution = {"solution.py": GOOD, "testkit.py": "raise RuntimeError", "io.py": "raise RuntimeError"}
    task = make_task("def test(): pass", visible={"runner": "asserts", "files": {"test_visible.py": TESTS}})
    assert run_visible(task, tmp_path, solution).output == "all 6 tests passed\n"
