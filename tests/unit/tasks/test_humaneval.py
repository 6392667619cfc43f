"""The HumanEval importer: good records become tasks, bad ones are named, and nothing is run."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pytest

from sandpiper.tasks.importers.humaneval import HIDDEN, SOLUTION, VISIBLE, import_humaneval
from sandpiper.tasks.plan import expected_tests

PROMPT = """import math

def twice(x):
    return 2 * x


def f(x):
    \'\'\' Doubles.
    >>> f(2)
    4
    >>> f(object())
    <weird>
    \'\'\'
"""
TEST = """

METADATA = {}


def check(candidate):
    assert True, 'always'
    assert candidate(1) == twice(1)
    assert candidate(0) == 0, 'zero'
"""
GOOD = {
    "task_id": "HumanEval/7",
    "prompt": PROMPT,
    "entry_point": "f",
    "canonical_solution": "    return twice(x)\n",
    "test": TEST,
}


def imported(*records: Any, packed: bool = False) -> Any:
    lines = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records).encode()
    return import_humaneval(io.BytesIO(gzip.compress(lines) if packed else lines), file="he.jsonl")


@pytest.mark.parametrize("packed", [False, True])
def test_a_record_becomes_a_task(packed: bool) -> None:
    found = imported(GOOD, packed=packed)
    assert found.problems == ()
    (task,) = found.tasks
    assert task.id == "humaneval-7"
    assert task.workspace == {SOLUTION: GOOD["prompt"]}
    assert task.reference[SOLUTION].endswith("return twice(x)\n")
    assert task.visible.files[VISIBLE].count("def test_") == 1
    assert "assert f(2) == 4" in task.visible.files[VISIBLE]


def test_one_hidden_test_per_assertion_and_helpers_of_our_own() -> None:
    (task,) = imported(GOOD).tasks
    source = task.hidden.files[HIDDEN]
    assert expected_tests(task.hidden) == (f"{HIDDEN}::test_01", f"{HIDDEN}::test_02")
    assert "from solution import f\n" in source
    assert "def twice(x):" in source
    assert "assert True" not in source


def test_a_check_with_a_loop_stays_whole() -> None:
    test = "def check(candidate):\n    for i in range(3):\n        assert candidate(i) == 2 * i\n"
    (task,) = imported(GOOD | {"test": test}).tasks
    assert expected_tests(task.hidden) == (f"{HIDDEN}::test_check",)
    assert "    check(f)\n" in task.hidden.files[HIDDEN]


@pytest.mark.parametrize(
    ("record", "field", "reason"),
    [
        ("{", "", "not JSON"),
        ("[1]", "", "not a JSON object"),
        ({k: v for k, v in GOOD.items() if k != "test"}, "test", "missing, empty or not text"),
        (GOOD | {"entry_point": 3}, "entry_point", "missing, empty or not text"),
        (GOOD | {"entry_point": "g"}, "entry_point", "prompt defines no function 'g'"),
        (GOOD | {"prompt": "def f(:\n"}, "prompt", "not Python"),
        (GOOD | {"canonical_solution": "  return (\n"}, "canonical_solution", "not Python"),
        (GOOD | {"test": "x = 1\n"}, "test", "defines no check(candidate)"),
        (GOOD | {"test": "(" * 3000}, "test", "not Python"),
    ],
)
def test_bad_records_are_named_and_the_rest_is_imported(record: Any, field: str, reason: str) -> None:
    found = imported(GOOD, record, GOOD | {"task_id": "HumanEval/8"})
    assert [task.id for task in found.tasks] == ["humaneval-7", "humaneval-8"]
    (problem,) = found.problems
    assert (problem.line, problem.field) == (2, field)
    assert reason in problem.reason


def test_doubled_ids_and_broken_gzip() -> None:
    found = imported(GOOD, GOOD)
    assert [str(problem) for problem in found.problems] == [
        "he.jsonl: line 2: id: 'humaneval-7' is already at line 1"
    ]
    packed = gzip.compress((json.dumps(GOOD) + "\n").encode() * 2)[:-12]
    found = import_humaneval(io.BytesIO(packed))
    assert any("broken gzip" in problem.reason for problem in found.problems)
