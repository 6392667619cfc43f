"""HumanEval: 164 references earn 1.0 and 164 untouched workspaces fail, in real sandboxes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from sandpiper.tasks.importers.humaneval import import_humaneval
from sandpiper.tasks.model import Task
from services.reward_grader.evidence import Evidence
from services.reward_grader.reward import reward
from tests.integration.reward_grader.executing import Bench, bench

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "humaneval" / "HumanEval.jsonl.gz"
AT_ONCE = 3

pytestmark = pytest.mark.skipif(not DATA.is_file(), reason="../shared/data/humaneval is not here")


def tasks() -> Sequence[Task]:
    with DATA.open("rb") as stream:
        found = import_humaneval(stream)
    assert found.problems == ()
    assert len(found.tasks) == 164
    return found.tasks


async def grade_all(stage: Bench, submissions: Sequence[tuple[Task, bool]]) -> list[Evidence]:
    """Evidence of references (True) and untouched workspaces (False)."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(task: Task, reference: bool) -> Evidence:
        async with gate:
            return await stage.grade(task, dict(task.workspace | task.reference) if reference else None)

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(one(*submission)) for submission in submissions]
    return [task.result() for task in running]


@pytest.mark.timeout(1200)
async def test_references_earn_everything_and_untouched_workspaces_fail() -> None:
    everything = tasks()
    submissions = [(task, reference) for task in everything for reference in (True, False)]
    async with bench(slots=AT_ONCE) as stage:
        found = await grade_all(stage, submissions)
    wrong = []
    for (task, reference), evidence in zip(submissions, found, strict=True):
        earned = reward(evidence, task.reward)
        right = (
            earned.value == 1.0 and earned.passed if reference else not earned.passed and earned.value < 0.5
        )
        if not right:
            wrong.append(
                (task.id, reference, evidence.verdict, [t for t in evidence.tests if t.status != "passed"])
            )
    assert wrong == []
