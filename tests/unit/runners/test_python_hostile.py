"""What a hostile candidate can do from its own process, and that none of it makes a test pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandpiper.tasks.plan import ReportError, expected_tests, read_report
from tests.unit.runners.direct import NONCE, by_name, hidden_report, make_task, run_hidden

TASK = make_task(
    "SECRET = 'only-in-the-test-process'\n"
    "from solution import f\n"
    "def test_equal():\n    assert f(1) == 'expected-value-1'\n"
    "def test_caught():\n    try:\n        f(2)\n    except BaseException:\n        pass\n"
    "    assert f(2) == 'expected-value-2'\n"
    "def test_close():\n    assert abs(f(3) - 7.5) < 0.1\n"
    "def test_order():\n    assert f(4) > 3\n"
    "def test_member():\n    assert 5 in f(5)\n"
    "def test_size():\n    assert len(f(7)) == 3\n"
)

NOTHING_PASSES = {
    "always_equal": """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return True
    def __lt__(self, other): return True
    def __gt__(self, other): return True
    def __sub__(self, other): return 0.0
    def __abs__(self): return 0.0
    def __contains__(self, other): return True
    def __len__(self): return 3
    def __bool__(self): return True
    __hash__ = None
def f(x): return Yes()
""",
    "lying_subclasses": """
class Text(str):
    def __eq__(self, other): return True
    def __ne__(self, other): return True
class Number(float):
    def __sub__(self, other): return 0.0
    def __gt__(self, other): return True
class Items(list):
    def __contains__(self, other): return True
    def __len__(self): return 3
def f(x): return {1: Text("x"), 2: Text("x"), 3: Number(0), 4: Number(0), 5: Items(), 6: 6, 7: Items()}[x]
""",
    "exit_in_call": "import os\ndef f(x): os._exit(0)\n",
    "sys_exit_in_call": "import sys\ndef f(x): sys.exit(0)\n",
    "keyboard_interrupt": "def f(x): raise KeyboardInterrupt\n",
    "frames": """
import sys, gc
def f(x):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):
            if isinstance(value, str) and value.startswith("expected-value"): return value
        frame = frame.f_back
    for thing in gc.get_objects():
        if isinstance(thing, dict):
            for value in list(thing.values()):
                if isinstance(value, str) and value.startswith("expected-value-"): return value
""",
    "forged_frames": """
import os, sys
from sandpiper.runners import codec
def forge(fd):
    for seq in range(1, 40):
        for reply in ({"seq": seq, "ok": "expected-value-1"}, {"nonce": "", "tests": []}, {"ended": 0}):
            data = codec.encode(reply)
            try: os.write(fd, len(data).to_bytes(4, "big") + data)
            except OSError: pass
for fd in range(3, 30): forge(fd)
def f(x): return None
""",
    "garbage_on_pipes": """
import os
def f(x):
    for fd in range(3, 30):
        try: os.write(fd, b"\\xff" * 100)
        except OSError: pass
""",
    "closes_everything": "import os\ndef f(x): os.closerange(0, 100)\n",
    "huge_answer": "def f(x): return 'x' * (8 << 20)\n",
    "deep_answer": "def f(x):\n    y = []\n    for _ in range(500): y = [y]\n    return y\n",
    "raises_test_frameworks_words": "class Skipped(Exception): pass\ndef f(x): raise Skipped('skip')\n",
    "assertion_for_everything": "def f(x): raise AssertionError\n",
    "patched_builtins": """
import builtins, time
builtins.isinstance = lambda *a: True
builtins.abs = lambda x: 0
builtins.len = lambda x: 3
time.monotonic = time.time = lambda: 0.0
def f(x): return None
""",
    "plants_files": """
import os
for name in ("conftest.py", "sitecustomize.py", "usercustomize.py", "pytest.ini", "pytest.py",
             "test_hidden.py", "minipytest.py", "_ast.py"):
    open(name, "w").write("import os; os._exit(0)")
os.makedirs("sandpiper/runners", exist_ok=True)
open("sandpiper/__init__.py", "w").write("import os; os._exit(0)")
def f(x): return None
""",
}


@pytest.mark.parametrize("name", sorted(NOTHING_PASSES))
def test_no_hidden_test_passes(tmp_path: Path, name: str) -> None:
    report = hidden_report(TASK, tmp_path, NOTHING_PASSES[name])
    assert [test.id for test in report.tests if test.status == "passed"] == []
    assert len(report.tests) == 6


def test_signals_do_not_end_the_runner(tmp_path: Path) -> None:
    solution = (
        "import os\nfor number in (1, 2, 3, 10, 12, 13, 14, 15): os.kill(os.getppid(), number)\n"
        "def f(x): return None\n"
    )
    report = hidden_report(TASK, tmp_path, solution)
    assert not any(test.status == "passed" for test in report.tests)


def test_killing_the_runner_leaves_no_report(tmp_path: Path) -> None:
    raw = run_hidden(TASK, tmp_path, "import os\nos.kill(os.getppid(), 9)\ndef f(x): return None\n")
    assert raw.code == -9
    with pytest.raises(ReportError, match="nothing came"):
        read_report(raw.channel, NONCE, expected_tests(TASK.hidden))


PROBE = """
import os
def f(name): return sorted(os.environ)
"""


def test_the_candidate_is_told_nothing(tmp_path: Path) -> None:
    task = make_task(
        "import os\nfrom solution import f\n"
        "def test_environment(): assert set(f('mine')) <= {'HOME', 'LANG', 'LC_CTYPE', 'PATH'}\n"
        "def test_files(): assert 'test_hidden.py' not in os.listdir('.')\n"
    )
    assert hidden_report(task, tmp_path, PROBE).passed


def test_a_leftover_child_that_holds_the_pipes_does_not_stall(tmp_path: Path) -> None:
    solution = (
        "import os, time\n"
        "def f(x):\n"
        "    if os.fork() == 0:\n        time.sleep(3)\n        os._exit(0)\n"
        "    os._exit(1)\n"
    )
    report = hidden_report(make_task("from solution import f\ndef test_a(): f(1)\n"), tmp_path, solution)
    assert report.tests[0].status == "error"
    assert report.tests[0].seconds < 1.5


def test_state_for_a_contradiction(tmp_path: Path) -> None:
    task = make_task(
        "from solution import add\n"
        "def test_one(): assert add(1, 1) == 2\ndef test_other(): assert add(1, 1) == 3\n"
    )
    solution = "_calls = 0\ndef add(a, b):\n    global _calls\n    _calls += 1\n    return 1 + _calls\n"
    tests = by_name(hidden_report(task, tmp_path, solution))
    assert tests["test_one"].status == "passed"
    assert tests["test_other"].status == "failed"


def test_a_candidate_class_may_not_answer_for_plain_data(tmp_path: Path) -> None:
    task = make_task(
        "from solution import Box\ndef test_a(): assert Box(1) == 1\ndef test_b(): assert 1 == Box(1)\n"
        "def test_c(): assert Box(1) == Box(1)\n",
        reference={"solution.py": "class Box: pass\n"},
    )
    solution = "class Box:\n    def __init__(self, x): self.x = x\n    def __eq__(self, other): return True\n"
    tests = by_name(hidden_report(task, tmp_path, solution))
    assert [tests[f"test_{name}"].status for name in "abc"] == ["failed", "failed", "passed"]


YES = """
class Yes:
    def __sub__(self, other): return self
    def __abs__(self): return self
    def __lt__(self, other): return True
    def __gt__(self, other): return True
    def __contains__(self, item): return True
"""
ODD_KEY = """
class Meta(type):
    def startswith(*a): return False
class Key(metaclass=Meta): pass
globals()[Key] = 1
"""


@pytest.mark.parametrize("switch", ["", ODD_KEY, "def warm(): return Yes\n", "f = Yes\n"])
def test_no_object_of_the_candidate_decides_a_comparison(tmp_path: Path, switch: str) -> None:
    task = make_task(
        "import solution\nfrom solution import f\n"
        "def test_a(): assert abs(f(1) - 5) < 0.1\n"
        "def test_b(): assert f(1) > 4\n"
        "def test_c(): assert 5 in f(1)\n"
        "def test_d():\n"
        "    getattr(solution, 'warm', f)\n"
        "    assert abs(f(1) - 5) < 0.1\n"
    )
    report = hidden_report(task, tmp_path, YES + "def f(x): return Yes()\n" + switch)
    assert {test.status for test in report.tests} & {"passed"} == set()


def test_words_that_no_record_can_hold_are_replaced(tmp_path: Path) -> None:
    task = make_task("from solution import f\ndef test_a(): assert f() == 1\n")
    report = hidden_report(task, tmp_path, "def f(): raise ValueError('\\ud800')\n")
    (test,) = report.tests
    assert test.status == "error"
    test.message.encode()


def test_an_object_is_not_different_from_plain_data_either(tmp_path: Path) -> None:
    task = make_task("from solution import f\ndef test_a(): assert f(6) != 6\n")
    assert not hidden_report(task, tmp_path, "def f(x): return object()\n").passed
    assert hidden_report(task, tmp_path, "def f(x): return 5\n").passed
