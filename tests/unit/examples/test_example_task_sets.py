"""The example task sets keep their promises: form, splits, hidden tests that only a solution passes."""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sandpiper.tasks.folder import read_task_set
from sandpiper.tasks.model import Task, TestSpec
from sandpiper.tasks.plan import expected_tests
from sandpiper.tasks.taskset import TaskSetInfo

SETS = Path(__file__).resolve().parents[3] / "examples" / "tasks"
CONSTANTS: tuple[Any, ...] = (True, False, None, 0, 1, "", [])


def load(name: str) -> tuple[TaskSetInfo, list[Task]]:
    return read_task_set(SETS / name)


STARTER = load("starter")[1]
TINY = load("tiny")[1]
PYTHON = [task for task in STARTER if task.language == "python"]
JAVASCRIPT = [task for task in STARTER if task.language == "javascript"]


def by_id(task: Task) -> str:
    return task.id


def function_name(task: Task) -> str:
    """The function that the stub of a Python task declares; there is exactly one."""
    body = ast.parse(task.workspace[task.solution_path]).body
    (function,) = (node for node in body if isinstance(node, ast.FunctionDef))
    return function.name


def failed_tests(spec: TestSpec, solution: ModuleType) -> list[str]:
    """Runs plain-assert tests in this process against `solution`; only for code of this repository."""
    failed = []
    before = sys.modules.get("solution")
    sys.modules["solution"] = solution
    try:
        for path, text in spec.files.items():
            namespace: dict[str, Any] = {}
            exec(compile(text, path, "exec"), namespace)
            tests = {name: value for name, value in namespace.items() if name.startswith("test_")}
            failed += [name for name, test in tests.items() if not succeeds(test)]
    finally:
        del sys.modules["solution"]
        if before is not None:
            sys.modules["solution"] = before
    return failed


def succeeds(test: Callable[[], None]) -> bool:
    try:
        test()
    except Exception:
        return False
    return True


def module_from(source: str) -> ModuleType:
    module = ModuleType("solution")
    exec(compile(source, "solution.py", "exec"), module.__dict__)
    return module


def constant_module(task: Task, value: Any) -> ModuleType:
    module = ModuleType("solution")
    setattr(module, function_name(task), lambda *_: value)
    return module


@pytest.mark.parametrize("name", ["starter", "tiny"])
def test_a_set_loads_under_its_folder_name_with_unique_ids(name: str) -> None:
    info, tasks = load(name)
    assert info.name == name
    assert max(Counter(task.id for task in tasks).values()) == 1


@pytest.mark.parametrize("tasks", [STARTER, TINY], ids=["starter", "tiny"])
def test_no_family_is_in_both_splits(tasks: list[Task]) -> None:
    train = {task.family for task in tasks if task.split == "train"}
    heldout = {task.family for task in tasks if task.split == "heldout"}
    assert train
    assert heldout
    assert not train & heldout


def test_starter_is_large_enough_in_both_languages_and_splits() -> None:
    assert len(PYTHON) >= 100
    assert len(JAVASCRIPT) >= 20
    heldout = {task.family for task in STARTER if task.split == "heldout"}
    families = {task.family for task in STARTER}
    assert 0.2 <= len(heldout) / len(families) <= 0.4
    for language in (PYTHON, JAVASCRIPT):
        assert {task.split for task in language} == {"train", "heldout"}


@pytest.mark.parametrize("task", STARTER, ids=by_id)
def test_a_starter_task_has_examples_boundaries_and_a_short_prompt(task: Task) -> None:
    assert 2 <= len(expected_tests(task.visible)) <= 3
    assert 4 <= len(expected_tests(task.hidden)) <= 8
    assert set(task.reference) == {task.solution_path}
    assert len(task.instruction) + len(task.workspace[task.solution_path]) < 480
    assert task.reply_prefix.startswith(f"```{task.language}\n")
    assert task.stop == ("```",)


@pytest.mark.parametrize("task", PYTHON, ids=by_id)
def test_a_python_instruction_names_the_function_of_stub_and_tests(task: Task) -> None:
    name = function_name(task)
    for text in (task.instruction, *task.visible.files.values(), *task.hidden.files.values()):
        assert f"{name}(" in text


@pytest.mark.parametrize("task", PYTHON, ids=by_id)
def test_a_python_reference_passes_every_test(task: Task) -> None:
    reference = module_from(task.reference[task.solution_path])
    assert failed_tests(task.visible, reference) == []
    assert failed_tests(task.hidden, reference) == []


@pytest.mark.parametrize("task", PYTHON, ids=by_id)
def test_a_python_stub_or_a_constant_fails_hidden_tests(task: Task) -> None:
    stub = module_from(task.workspace[task.solution_path])
    assert failed_tests(task.hidden, stub)
    for value in CONSTANTS:
        assert failed_tests(task.hidden, constant_module(task, value)), f"always {value!r} passes"


@pytest.mark.parametrize("task", JAVASCRIPT, ids=by_id)
def test_npm_test_runs_the_visible_tests_of_a_javascript_task(task: Task) -> None:
    package = json.loads(task.workspace["package.json"])
    assert package["scripts"]["test"] == "node --test"
    assert all(path.endswith(".test.js") for path in task.visible.files)
    assert (
        f"module.exports = {{ {task.instruction.split('`')[1].split('(')[0]} }}"
        in task.workspace["solution.js"]
    )


@pytest.mark.parametrize("task", TINY, ids=by_id)
def test_a_tiny_task_grades_in_steps_and_pays_for_each(task: Task) -> None:
    assert 7 <= len(expected_tests(task.hidden)) <= 10
    assert task.reward.coverage_bonus >= 0.5
    assert task.limits.max_new_tokens <= 16


def test_tiny_has_twelve_tasks_to_train_and_four_held_out() -> None:
    assert Counter(task.split for task in TINY) == {"train": 12, "heldout": 4}
