"""Replies become actions, results become observations; cuts are marked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandpiper.tasks.model import Task
from sandpiper.v1.sandbox_pb2 import (
    OUTCOME_NONZERO_EXIT,
    OUTCOME_OK,
    OUTCOME_WALL_TIMEOUT,
    SandboxResult,
)
from services.rollout_orchestrator.harness import HARNESSES, Action
from services.rollout_orchestrator.harness.text import cut, fenced_blocks
from services.rollout_orchestrator.taskspec import TaskSpec


def make_task(**changes: object) -> TaskSpec:
    data = {
        "id": "add",
        "family": "add",
        "language": "python",
        "instruction": "Write add(a, b).",
        "workspace": {"solution.py": "def add(a, b):\n    ...\n"},
        "solution_path": "solution.py",
        "visible": {"runner": "asserts", "files": {"test_visible.py": "def test_a():\n    assert True\n"}},
        "hidden": {"runner": "asserts", "files": {"test_hidden.py": "SECRET_HIDDEN = 1\n"}},
        "reference": {"solution.py": "SECRET_REFERENCE = 1\n"},
    }
    return TaskSpec.of(Task.model_validate(data | changes))


def test_the_last_block_replaces_the_solution() -> None:
    action = HARNESSES["single-file"].parse(make_task(), "a\n```python\nx = 1\n```\nb\n```\ny = 2\n```\n")
    assert action.kind == "run"
    assert action.files == {"solution.py": "y = 2\n"}
    assert "test_visible.py" in action.argv


def test_reply_prefix_opens_the_block_and_an_unclosed_block_counts() -> None:
    action = HARNESSES["single-file"].parse(make_task(reply_prefix="```python\n"), "x = 1\n")
    assert action.files == {"solution.py": "x = 1\n"}


def test_no_block_is_an_invalid_action_with_a_note() -> None:
    action = HARNESSES["single-file"].parse(make_task(), "I cannot do that.")
    assert action.kind == "invalid"
    assert "fenced" in action.note


@pytest.mark.parametrize("harness", ["single-file", "shell"])
def test_a_prompt_never_holds_hidden_tests_or_the_reference(harness: str) -> None:
    task = make_task(harness=harness)
    shown = "".join(m["content"] for m in HARNESSES[harness].opening(task)) + str(task.to_json())
    assert "SECRET" not in shown


def test_shell_runs_the_one_block_submits_on_submit_and_refuses_two() -> None:
    shell, task = HARNESSES["shell"], make_task(harness="shell")
    assert shell.parse(task, "```bash\nls -l\n```").argv == ("bash", "-c", "ls -l")
    assert shell.parse(task, "done\n```bash\nsubmit\n```").kind == "submit"
    assert shell.parse(task, "```bash\nls\n```\n```bash\npwd\n```").kind == "invalid"
    assert shell.parse(task, "nothing").kind == "invalid"


def test_an_action_survives_its_record() -> None:
    action = Action("run", {"a": "b"}, ("x", "y"), "n")
    assert Action.from_json(action.to_json()) == action


def test_passing_visible_tests_end_the_episode_and_failures_are_shown() -> None:
    harness, task = HARNESSES["single-file"], make_task()
    assert harness.observe(task, SandboxResult(outcome=OUTCOME_OK)).done
    failed = SandboxResult(outcome=OUTCOME_NONZERO_EXIT, exit_code=1, stdout=b"assert add(1, 2) == 3")
    observation = harness.observe(task, failed)
    assert not observation.done
    assert "assert add(1, 2) == 3" in observation.text
    assert "out of time" in harness.observe(task, SandboxResult(outcome=OUTCOME_WALL_TIMEOUT)).text


@given(st.text(max_size=500), st.integers(min_value=1, max_value=100))
def test_a_cut_keeps_head_and_tail_and_says_what_is_missing(text: str, limit: int) -> None:
    shown = cut(text, limit)
    if len(text) <= limit:
        assert shown == text
        return
    assert f"[... {len(text) - limit} characters cut ...]" in shown
    assert shown.startswith(text[: limit // 2])
    assert shown.endswith(text[-(limit - limit // 2) :])


@given(st.lists(st.text(alphabet="ab \n", max_size=20), max_size=4))
def test_blocks_come_back_in_order(bodies: list[str]) -> None:
    text = "".join(f"```py\n{body}\n```\n" for body in bodies)
    assert [block for _, block in fenced_blocks(text)] == [f"{body}\n" for body in bodies]
