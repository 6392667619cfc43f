"""Validation in local sandboxes, for both languages, and what such a sandbox keeps out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sandpiper.tasks.local import Execution, ExecutionResult, LocalRunner
from sandpiper.tasks.model import Files, Task, TaskLimits
from sandpiper.tasks.validate import failures, validate_tasks
from tests.unit.runners.direct import make_task

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

JS_TEST = (
    "const { test } = require('node:test');\nconst assert = require('node:assert');\n"
    "const { add } = require('./solution.js');\ntest('adds', () => { assert.strictEqual(add(1, 2), 3); });\n"
)
PY_TEST = "from solution import add\ndef test_add(): assert add(1, 2) == 3\n"
LIMITS = {"wall_s": 60, "cpu_s": 10}


def python_task(**changes: object) -> Task:
    return make_task(
        PY_TEST,
        workspace={"solution.py": "def add(a, b): return 0\n"},
        reference={"solution.py": "def add(a, b): return a + b\n"},
        visible={"runner": "asserts", "files": {"test_visible.py": PY_TEST}},
        limits=LIMITS,
        **changes,
    )


def javascript_task() -> Task:
    return make_task(
        JS_TEST,
        language="javascript",
        workspace={"solution.js": "exports.add = () => 0;\n"},
        reference={"solution.js": "exports.add = (a, b) => a + b;\n"},
        visible={"runner": "node", "files": {"visible.test.js": JS_TEST}},
        limits=LIMITS,
    )


def test_good_tasks_hold_and_bad_ones_are_named() -> None:
    tasks = [python_task()]
    tasks += [javascript_task()] if shutil.which("node") else []
    tasks += [
        python_task().model_copy(update={"workspace": python_task().reference, "id": "passes-untouched"})
    ]
    tasks += [python_task().model_copy(update={"reference": python_task().workspace, "id": "bad-reference"})]
    results = validate_tasks(tasks, LocalRunner())
    assert [result.ok for result in results] == [True] * (len(tasks) - 2) + [False, False]
    text = "\n".join(failures(results))
    assert "passes-untouched: untouched workspace fails hidden tests: it passes" in text
    assert (
        "bad-reference: reference passes hidden tests: test_hidden.py::test_add: assert add(1, 2) == 3: got 0"
        in text
    )
    assert "bad-reference: reference passes visible tests: 1 of 1 tests failed" in text


def run(program: str, files: Files | None = None, **limits: float) -> ExecutionResult:
    chosen = TaskLimits.model_validate({"wall_s": 60, "cpu_s": 5} | limits)
    return LocalRunner().run(Execution(("/usr/bin/python3", "-I", "-c", program), files or {}, chosen))


def test_nothing_of_the_host_is_there(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    program = f"""
import os, socket
print(sorted(set(os.environ) - {{"HOME", "LANG", "LC_CTYPE", "PATH", "PWD"}}))
print([path for path in ({str(secret)!r}, "/root", "/home", "/etc") if os.path.exists(path)])
print(os.getuid(), sum(name.isdigit() for name in os.listdir("/proc")) < 5)
try: socket.create_connection(("1.1.1.1", 53), timeout=1)
except OSError as error: print("no network")
for place in ("/usr/x", "/opt/sandpiper/runners/x", "/x"):
    try: open(place, "w"); print("wrote", place)
    except OSError: pass
open("made", "w").write("1")
"""
    result = run(program, {"given.txt": "1"})
    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == ["[]", "[]", "65534 True", "no network"]


def test_limits_end_a_run_and_everything_in_it() -> None:
    sleeper = "import os, time\nos.fork()\nos.setsid() if os.getpid() != 2 else None\ntime.sleep(600)\n"
    assert run(sleeper, wall_s=1.5).timed_out
    looper = run("while True: pass", cpu_s=1)
    assert looper.exit_code not in (0, None)
    assert looper.seconds < 55
