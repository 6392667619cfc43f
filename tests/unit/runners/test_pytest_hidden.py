"""Hidden tests under real pytest, whose files and configuration the candidate never gets at."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from sandpiper.tasks.languages import RUNNERS
from sandpiper.tasks.plan import HiddenTest, expected_tests, read_report
from tests.unit.runners.direct import NONCE, by_name, make_task, run_hidden

WITH_PYTEST = (sys.executable, "-I", "-B", f"{RUNNERS}/python_hidden.py")
TESTS = """
import pytest
from solution import add, fail


@pytest.fixture
def three():
    return 3


@pytest.mark.parametrize("a", [1, 2, 3])
def test_add(a, three, bonus):
    assert add(a, three) == a + 3 + bonus


def test_raises(tmp_path):
    (tmp_path / "x").write_text("y")
    with pytest.raises(ValueError, match="no"):
        fail()


class TestGroup:
    def test_in_class(self):
        assert add(1, 1) == 2


@pytest.mark.skip
def test_skipped():
    pass


@pytest.mark.xfail
def test_xfailed():
    assert add(1, 1) == 3


def test_exit():
    try:
        fail(1)
    except BaseException:
        pass
"""
GOOD = """
import os
def add(a, b):
    return a + b
def fail(how=0):
    if how:
        os._exit(0)
    raise ValueError("no")
"""


def grade(folder: Path, solution: str) -> dict[str, HiddenTest]:
    conftest = "import pytest\n\n\n@pytest.fixture\ndef bonus():\n    return 0\n"
    limits = {"wall_s": 90, "cpu_s": 20}
    task = make_task({"test_hidden.py": TESTS, "conftest.py": conftest}, limits=limits)
    task = task.model_copy(update={"hidden": task.hidden.model_copy(update={"runner": "pytest"})})
    raw = run_hidden(task, folder, solution, argv=WITH_PYTEST)
    assert raw.code == 0, raw.output
    return by_name(read_report(raw.channel, NONCE, expected_tests(task.hidden)))


def test_verdicts_of_pytest(tmp_path: Path) -> None:
    tests = grade(tmp_path, GOOD)
    assert {name: test.status for name, test in tests.items()} == {
        "test_add": "passed",
        "test_raises": "passed",
        "TestGroup::test_in_class": "passed",
        "test_skipped": "missing",
        "test_xfailed": "missing",
        "test_exit": "error",
    }


def test_failures_and_files_that_do_not_load(tmp_path: Path) -> None:
    tests = grade(tmp_path, GOOD.replace("a + b", "a * b"))
    assert (tests["test_add"].status, tests["test_add"].kind) == ("failed", "assertion")
    assert {(test.status, test.kind) for test in grade(tmp_path, "def add(:\n").values()} == {
        ("error", "syntax")
    }


@pytest.mark.parametrize(
    "solution",
    [
        "import _pytest.python as p\np.Function.runtest = lambda self: None\n",
        "import glob, os\nfor name in glob.glob('/tmp/tests-*/*'):\n    open(name, 'w').write('x = 1')\n",
        "import glob, os\nfor name in glob.glob('/tmp/tests-*'):\n"
        "    open(name + '/conftest.py', 'w').write('import os; os._exit(0)')\n",
        "open('conftest.py', 'w').write('import os; os._exit(0)')\n"
        "open('pytest.ini', 'w').write('[pytest]\\naddopts = --collect-only -q')\n",
    ],
)
def test_attacks_on_pytest_pass_nothing(tmp_path: Path, solution: str) -> None:
    tests = grade(tmp_path, solution + "def add(a, b): return 0\ndef fail(how=0): return None\n")
    assert [name for name, test in tests.items() if test.status == "passed"] == ["test_exit"]


def test_without_pytest_there_is_no_verdict(tmp_path: Path) -> None:
    """A plan that the runner cannot carry out is the image's fault: no report, a status below 128."""
    task = make_task("def test_a(): pass\n")
    task = task.model_copy(update={"hidden": task.hidden.model_copy(update={"runner": "pytest"})})
    python = shutil.which("python3", path="/usr/bin") or "/usr/bin/python3"
    raw = run_hidden(task, tmp_path, "", argv=(python, "-I", "-S", "-B", f"{RUNNERS}/python_hidden.py"))
    assert 0 < raw.code < 128
    assert raw.channel == b""
    assert "No module named 'pytest'" in raw.output
