"""`sandpiper tasks validate`: what it reads, what it says, how it exits."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from sandpiper.cli import validation
from sandpiper.cli.errors import BadInput
from sandpiper.tasks.archive import archive_task_set
from sandpiper.tasks.folder import write_task_set
from sandpiper.tasks.jsonl import dump_jsonl
from sandpiper.tasks.model import Task
from sandpiper.tasks.taskset import TaskSetInfo
from sandpiper.tasks.validate import Check, TaskResult


def task(ident: str) -> Task:
    files = {"solution.py": "x = 1\n"}
    tests = {"runner": "asserts", "files": {f"test_{ident}.py": "def test_a(): pass\n"}}
    return Task.model_validate(
        {
            "id": ident,
            "family": ident,
            "language": "python",
            "instruction": "do",
            "workspace": files,
            "solution_path": "solution.py",
            "visible": tests,
            "hidden": tests,
            "reference": files,
        }
    )


TASKS = [task("one"), task("two")]
INFO = TaskSetInfo(name="set")


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replaces the sandboxes: task `two` does not hold. Gives the ids that were validated."""
    seen: list[str] = []

    def run(tasks: Sequence[Task], runner: object, progress: Any, *, workers: int) -> list[TaskResult]:
        seen.extend(item.id for item in tasks)
        return [TaskResult(t.id, (Check("reference", t.id == "one", 0.1, "because"),)) for t in tasks]

    monkeypatch.setattr(validation, "LocalRunner", object)
    monkeypatch.setattr(validation, "validate_tasks", run)
    return seen


def test_every_form_is_read(tmp_path: Path) -> None:
    write_task_set(INFO, TASKS, tmp_path / "set")
    (tmp_path / "set.jsonl").write_bytes(dump_jsonl(TASKS))
    (tmp_path / "set.tar.zst").write_bytes(archive_task_set(INFO, TASKS))
    for name in ("set", "set.jsonl", "set.tar.zst"):
        assert [item.id for item in validation.read_tasks(tmp_path / name)] == ["one", "two"]


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    file = tmp_path / "set.jsonl"
    file.write_bytes(dump_jsonl(TASKS[:1]) + b"{}\n" * 20)
    with pytest.raises(BadInput, match=r"line 2: (?s:.*)… and"):
        validation.read_tasks(file)
    for name in ("none.jsonl", "set.csv"):
        with pytest.raises(BadInput, match=name):
            validation.read_tasks(tmp_path / name)


def test_exit_status_and_output(command: Callable[..., Result], checked: list[str], tmp_path: Path) -> None:
    write_task_set(INFO, TASKS, tmp_path / "set")
    bad = command("tasks", "validate", str(tmp_path / "set"))
    assert bad.exit_code == 1
    assert "two: reference: because" in bad.output
    assert "1 of 2 tasks hold" in bad.output
    good = command("tasks", "validate", str(tmp_path / "set"), "--task", "one", "--json")
    assert good.exit_code == 0
    assert json.loads(good.stdout)["ok"] is True
    assert checked == ["one", "two", "one"]
    assert command("tasks", "validate", str(tmp_path / "set"), "--task", "three").exit_code == 2
    assert command("tasks", "validate", str(tmp_path / "none")).exit_code == 2
