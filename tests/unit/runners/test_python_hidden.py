"""Hidden tests through the proxy behave as if the candidate were imported, for honest candidates."""

from __future__ import annotations

from pathlib import Path

from tests.unit.runners.direct import by_name, hidden_report, make_task

TESTS = """
import contextlib
import io

import pytest

import solution
from solution import CONSTANT, Account, Empty, add, apply, counter, evens, fill, grid, join, make_adder, shout


def test_plain_data():
    assert add(1, 2) == 3
    assert add([1], [2]) == [1, 2]
    assert solution.add("a", "b") == "ab"
    assert add(10**30, 1) == 10**30 + 1
    assert CONSTANT == {"key": (1, {2}, None, 2.5, b"x")}
    assert isinstance(add(True, False), int)


def test_keywords():
    assert join("a", "b", sep="-") == "a-b"


def test_builtin_exception():
    with pytest.raises(ZeroDivisionError, match="division"):
        add(1, 1 / 1) / solution.divide(1, 0)
    try:
        solution.divide(1, 0)
    except ZeroDivisionError as error:
        assert str(error) == "division by zero"
    else:
        raise AssertionError("nothing was raised")


def test_own_exception():
    with pytest.raises(Empty) as caught:
        solution.first([])
    assert isinstance(caught.value, ValueError)
    assert caught.value.args == ("nothing here", 7)


def test_changed_arguments_are_seen():
    numbers, nested = [3, 1, 2], {"inner": [1]}
    inner = nested["inner"]
    assert fill(numbers, nested) is None
    assert numbers == [1, 2, 3]
    assert nested == {"inner": [1, 99], "more": 1}
    assert inner == [1, 99]
    board = [[0, 0], [0, 0]]
    row = board[1]
    grid(board)
    assert row == [0, 5]


def test_generators_and_closures():
    assert list(evens(7)) == [0, 2, 4, 6]
    items = evens(3)
    assert next(items) == 0
    assert next(items) == 2
    with pytest.raises(StopIteration):
        next(items)
    assert make_adder(3)(4) == 7


def test_callbacks():
    seen = []
    assert apply(lambda x: seen.append(x) or x * 2, [1, 2]) == [2, 4]
    assert seen == [1, 2]
    assert apply(str, [1]) == ["1"]
    assert apply(make_adder(1), [1]) == [2]
    with pytest.raises(KeyError):
        apply(lambda x: {}[x], [1])


def test_class():
    account = Account("ann")
    account.deposit(5)
    account.deposit(amount=2)
    assert account.balance == 7
    assert isinstance(account, Account)
    assert Account.KIND == "plain"
    assert len(account) == 2
    assert list(account) == [5, 2]
    assert account == Account.of("ann", 7)
    assert not account == 7
    assert str(account) == "ann: 7"
    account.balance = 1
    assert account.balance == 1
    with pytest.raises(AttributeError):
        account.nothing
    with pytest.raises(Empty):
        account.withdraw(99)
    assert 5 in account


def test_printing():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        shout("hey")
    assert out.getvalue() == "HEY\\n"


def test_state_lives_within_a_test():
    assert [counter(), counter()] == [1, 2]


def test_state_does_not_pass_to_the_next_test():
    assert counter() == 1


def test_hidden_data_file():
    assert open("table.txt").read() == "1 2 3"
    with open("table.txt", "rb") as file:
        assert file.read() == b"1 2 3"


def test_helper_module():
    from helpers import double

    assert double(2) == 4
"""
SOLUTION = """
import workspace_helper

CONSTANT = {"key": (1, {2}, None, 2.5, b"x")}
_count = 0


class Empty(ValueError):
    pass


class Account:
    KIND = "plain"

    def __init__(self, owner):
        self.owner, self.balance, self.entries = owner, 0, []

    @classmethod
    def of(cls, owner, balance):
        made = cls(owner)
        made.balance = balance
        return made

    def deposit(self, amount):
        self.balance += amount
        self.entries.append(amount)

    def withdraw(self, amount):
        raise Empty("too little")

    def __len__(self):
        return len(self.entries)

    def __iter__(self):
        return iter(self.entries)

    def __contains__(self, amount):
        return amount in self.entries

    def __eq__(self, other):
        return isinstance(other, Account) and (self.owner, self.balance) == (other.owner, other.balance)

    def __str__(self):
        return f"{self.owner}: {self.balance}"


def add(a, b):
    return workspace_helper.plus(a, b)


def join(*words, sep):
    return sep.join(words)


def divide(a, b):
    return a / b


def first(xs):
    raise Empty("nothing here", 7)


def fill(numbers, nested):
    numbers.sort()
    nested["inner"].append(99)
    nested["more"] = 1


def grid(board):
    board[1][1] = 5


def evens(limit):
    for number in range(0, limit, 2):
        yield number


def make_adder(n):
    return lambda x: x + n


def apply(function, xs):
    return [function(x) for x in xs]


def shout(text):
    print(text.upper())


def counter():
    global _count
    _count += 1
    return _count
"""


def test_honest_candidates_cannot_tell(tmp_path: Path) -> None:
    files = {
        "test_hidden.py": TESTS,
        "table.txt": "1 2 3",
        "helpers.py": "def double(x):\n    return 2 * x\n",
    }
    workspace = {"workspace_helper.py": "def plus(a, b):\n    return a + b\n"}
    task = make_task(files, workspace=workspace, reference={"solution.py": SOLUTION})
    report = hidden_report(task, tmp_path, workspace | {"solution.py": SOLUTION})
    assert [(test.id, test.message) for test in report.tests if test.status != "passed"] == []
    assert report.passed
    assert len(report.tests) == 13


def test_failures_are_told_apart(tmp_path: Path) -> None:
    task = make_task(
        "from solution import f, g\n"
        "def test_ok(): assert f(1) == 1\n"
        "def test_wrong(): assert f(1) == 2\n"
        "def test_raises(): g()\n"
        "def test_asserts_inside(): solution_assert()\n"
        "def solution_assert(): f(None)\n"
    )
    solution = "def f(x):\n    assert x is not None, 'mine'\n    return x\ndef g():\n    return {}['k']\n"
    tests = by_name(hidden_report(task, tmp_path, solution))
    assert {name: (test.status, test.kind) for name, test in tests.items()} == {
        "test_ok": ("passed", ""),
        "test_wrong": ("failed", "assertion"),
        "test_raises": ("error", "exception"),
        "test_asserts_inside": ("error", "exception"),
    }
    assert tests["test_wrong"].message == "assert f(1) == 2: got 1, expected 2"
    assert tests["test_raises"].message.startswith("KeyError: 'k' (in `def test_raises(): g()`)")


def test_a_solution_that_does_not_load(tmp_path: Path) -> None:
    task = make_task("from solution import f\ndef test_a(): f()\ndef test_b(): f()\n")
    cases = {
        "def f(:\n": ("error", "syntax"),
        "1 / 0\n": ("error", "exception"),
        "def g(): pass\n": ("error", "exception"),
        "import sys\nsys.exit(0)\n": ("error", "exception"),
        "import os\nos._exit(0)\n": ("error", "exception"),
        "while True: pass\n": ("failed", "timeout"),
    }
    for solution, expected in cases.items():
        report = hidden_report(task, tmp_path, solution)
        assert {(test.status, test.kind) for test in report.tests} == {expected}, solution


def test_a_missing_artifact_is_named(tmp_path: Path) -> None:
    task = make_task("import solution\ndef test_a(): pass\n", artifacts=["solution.py", "notes.txt"])
    report = hidden_report(task, tmp_path, {"solution.py": "x = 1\n"})
    assert report.missing == ("notes.txt",)
    assert not report.passed
    (tmp_path / "notes.txt").symlink_to("/etc/passwd")
    assert hidden_report(task, tmp_path, {}).missing == ("notes.txt",)


def test_data_answers_need_no_module(tmp_path: Path) -> None:
    task = make_task(
        "def test_answer():\n    assert open('answer.txt').read().strip() == '42'\n",
        solution_path="answer.txt",
        reference={"answer.txt": "42\n"},
    )
    assert hidden_report(task, tmp_path, "42\n").passed
    assert not hidden_report(task, tmp_path, "41\n").passed


def test_packages(tmp_path: Path) -> None:
    task = make_task(
        "from pkg.sub.mod import f\nimport pkg.sub.mod as m\ndef test_a(): assert f() == m.f() == 3\n",
        solution_path="pkg/sub/mod.py",
        workspace={"pkg/__init__.py": "", "pkg/sub/__init__.py": ""},
        reference={"pkg/sub/mod.py": "def f(): return 3\n"},
    )
    assert hidden_report(task, tmp_path, {**task.workspace, **task.reference}).passed


def test_parametrised_test_is_one_test_that_needs_all_its_cases(tmp_path: Path) -> None:
    task = make_task(
        "import pytest\nfrom solution import f\n"
        "@pytest.mark.parametrize('x', [1, 2, 3])\ndef test_f(x): assert f(x) == x\n"
        "@pytest.mark.parametrize('x', [])\ndef test_none(x): pass\n"
    )
    tests = by_name(hidden_report(task, tmp_path, "def f(x): return min(x, 2)\n"))
    assert tests["test_f"].message == "assert f(x) == x: got 2, expected 3"
    assert tests["test_none"].status == "missing"


def test_looping_is_told_by_cpu_time_and_the_report_still_comes(tmp_path: Path) -> None:
    tests = "from solution import f\n" + "".join(f"def test_{n}(): f({n})\n" for n in range(5))
    task = make_task(tests, limits={"wall_s": 60, "cpu_s": 2.5})
    report = hidden_report(task, tmp_path, "def f(n):\n    while n: pass\n")
    assert report.tests[0].status == "passed"
    assert {test.kind for test in report.tests[1:]} == {"timeout"}
    assert report.tests[1].message == "the candidate used up its CPU time"
    assert "not run" in report.tests[-1].message


def test_sleeping_is_told_by_wall_time_and_leaves_some_to_the_others(tmp_path: Path) -> None:
    tests = "from solution import f\n" + "".join(f"def test_{n}(): f({n})\n" for n in range(3))
    task = make_task(tests, limits={"wall_s": 6, "cpu_s": 2})
    report = hidden_report(task, tmp_path, "import time\ndef f(n):\n    if n == 0: time.sleep(60)\n")
    assert [(test.status, test.kind) for test in report.tests] == [
        ("failed", "timeout"),
        ("passed", ""),
        ("passed", ""),
    ]
