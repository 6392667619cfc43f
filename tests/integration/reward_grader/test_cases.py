"""The public cases of ../shared/cases against the Python hidden runner, in a real sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from sandpiper.tasks.model import Files, Task
from services.reward_grader.evidence import Evidence
from services.reward_grader.reward import reward
from tests.integration.reward_grader.executing import Bench, bench

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases"

pytestmark = [
    pytest.mark.skipif(not CASES.is_dir(), reason="../shared/cases is not here"),
    pytest.mark.asyncio(loop_scope="module"),
]
PERFORMANCE = {"15_patch_clock.py", "17_correct_only_while_checked.py"}
"""They cheat about speed, which is not graded yet; that they fail here has other reasons."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage() -> AsyncIterator[Bench]:
    async with bench() as started:
        yield started


def cases(folder: str, kind: str = "solution") -> list[Path]:
    if not CASES.is_dir():
        return []
    return [path for path in sorted((CASES / folder).glob("*.py")) if f"kind: {kind}" in path.read_text()]


def case_task(hidden: str = "test_hidden.py") -> Task:
    part = {path.name: path.read_text() for path in (CASES / "task").iterdir()}
    return Task.model_validate(
        {
            "id": "case",
            "family": "case",
            "language": "python",
            "instruction": part["instruction.md"],
            "workspace": {"solution.py": part["solution_stub.py"]},
            "solution_path": "solution.py",
            "visible": {"runner": "asserts", "files": {"test_visible.py": part["test_visible.py"]}},
            "hidden": {"runner": "asserts", "files": {hidden: part[hidden]}},
            "reference": {"solution.py": part["solution_ref.py"]},
            "limits": {"wall_s": 20, "cpu_s": 3},
        }
    )


async def graded(stage: Bench, solution: Path, task: Task) -> Evidence:
    return await stage.grade(task, {"solution.py": solution.read_text()})


@pytest.mark.parametrize("path", cases("exploits"), ids=lambda path: path.stem)
async def test_no_exploit_is_paid(stage: Bench, path: Path) -> None:
    task = case_task("test_conflict.py" if "fools: conflict" in path.read_text() else "test_hidden.py")
    evidence = await graded(stage, path, task)
    earned = reward(evidence, task.reward)
    assert not earned.passed, evidence
    assert earned.value < 0.2


@pytest.mark.parametrize("path", cases("controls"), ids=lambda path: path.stem)
async def test_controls_get_their_verdict(stage: Bench, path: Path) -> None:
    expected = path.read_text().split("verdict: ")[1].split()[0]
    evidence = await graded(stage, path, case_task())
    verdicts = {"pass": "passed", "fail": "failed_tests", "timeout": "timeout"}
    assert evidence.verdict == verdicts[expected], evidence
    assert evidence.findings == ()


async def test_reference_passes_and_stub_fails(stage: Bench) -> None:
    task = case_task()
    files: Files = dict(task.reference)
    assert (await stage.grade(task, files)).verdict == "passed"
    assert (await stage.grade(task, None)).verdict == "failed_tests"


KILLS = {
    "kill": "import os\nos.kill(os.getppid(), 9)\n",
    "stop": "import os\nos.kill(os.getppid(), 19)\n",
    "fork bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n",
    "memory": "x = []\nwhile True: x.append(bytearray(1 << 20))\n",
    "output": "while True: print('x' * 10000)\n",
    "disk": "f = open('/workspace/big', 'wb')\nwhile True: f.write(b'x' * (1 << 20))\n",
    "deleted": "import os\nos.remove('solution.py')\nadd = median = lambda *a: 0\n",
}


@pytest.mark.parametrize("name", sorted(KILLS))
async def test_whatever_a_candidate_does_to_the_run_is_a_failing_verdict(stage: Bench, name: str) -> None:
    task = case_task()
    task = task.model_copy(update={"limits": task.limits.model_copy(update={"wall_s": 6.0})})
    evidence = await stage.grade(task, {"solution.py": KILLS[name]})
    earned = reward(evidence, task.reward)
    assert not earned.passed
    assert earned.value < 0.1
    if name == "kill":
        assert (evidence.verdict, evidence.findings[0].kind) == ("runner_killed", "runner_killed")


PROBE = """
import os

def add(a, b):
    pid, found = os.getpid(), []
    while pid > 1:
        pid = int(open(f"/proc/{pid}/status").read().split("PPid:")[1].split()[0])
        if b"python_hidden" not in open(f"/proc/{pid}/cmdline", "rb").read():
            continue
        for name in ("mem", "environ", "maps", "auxv"):
            try: found.append((name, open(f"/proc/{pid}/{name}", "rb").read(8)))
            except OSError: pass
        for fd in range(64):
            for mode in ("rb", "wb"):
                try: found.append((fd, mode, open(f"/proc/{pid}/fd/{fd}", mode)))
                except OSError: pass
        return found
    return "no trusted process"
"""


async def test_nothing_of_the_trusted_process_can_be_opened(stage: Bench) -> None:
    task = case_task()
    hidden = {"test_hidden.py": "from solution import add\ndef test_a(): assert add(1, 2) == []\n"}
    task = task.model_copy(update={"hidden": task.hidden.model_copy(update={"files": hidden})})
    evidence = await stage.grade(task, {"solution.py": PROBE})
    assert evidence.verdict == "passed", evidence.tests
