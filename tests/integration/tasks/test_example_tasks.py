"""The example task sets in real sandboxes: references pass, untouched workspaces fail, in both languages."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sandpiper.tasks.folder import read_task_set
from sandpiper.tasks.local import LocalRunner
from sandpiper.tasks.validate import failures, validate_tasks

SETS = Path(__file__).resolve().parents[3] / "examples" / "tasks"

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        not (shutil.which("bwrap") and shutil.which("node")), reason="bubblewrap or node is not installed"
    ),
]


@pytest.mark.parametrize("name", ["starter", "tiny"])
def test_every_task_of_the_set_validates(name: str) -> None:
    _, tasks = read_task_set(SETS / name)
    results = validate_tasks(tasks, LocalRunner())
    assert failures(results) == []
    assert len(results) == len(tasks)
