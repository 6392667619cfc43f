"""HumanEval: JSONL, plain or gzip, of `task_id, prompt, entry_point, canonical_solution, test`.

The workspace holds the prompt (a function without body). Visible tests come from the prompt's `>>>`
examples. Hidden tests are the record's `check(candidate)`, one test per assertion where `check` is a plain
list of them. Helper functions that the prompt defines and the test uses are copied into the test, so that
they are not the candidate's.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from pydantic import ValidationError

from sandpiper.tasks.importers import Imported
from sandpiper.tasks.model import Split, Task
from sandpiper.tasks.problems import Problem, TaskSetError, from_validation, problem
from sandpiper.tasks.taskset import TaskSetChecker

FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")
MAX_LINE_BYTES = 4 * 1024 * 1024
MAX_BYTES = 512 * 1024 * 1024
GZIP_MAGIC = b"\x1f\x8b"
WRONG_EXAMPLES = {("HumanEval/47", "median([-10, 4, 6, 1000, 10, 20])")}
"""Examples of the published data set that its own reference contradicts."""
SOLUTION, HIDDEN, VISIBLE = "solution.py", "test_hidden.py", "test_visible.py"


@dataclass(frozen=True)
class Record:
    """One line whose fields are there and parse."""

    task_id: str
    prompt: str
    entry_point: str
    canonical_solution: str
    test: str


def import_humaneval(stream: BinaryIO, *, file: str = "", split: Split = "train") -> Imported:
    """Tasks of a HumanEval file, and its bad records. Raises OSError where the stream cannot be read."""
    tasks: list[Task] = []
    problems: list[Problem] = []
    checker = TaskSetChecker()
    for number, line in _lines(stream, file, problems):
        try:
            task = import_record(_record(line), split)
        except TaskSetError as error:
            problems += [Problem(found.reason, file, number, found.field) for found in error.problems]
            continue
        doubled = checker.check(task, file=file, line=number)
        if doubled is None:
            tasks.append(task)
        else:
            problems.append(doubled)
    return Imported(tuple(tasks), tuple(problems))


def import_record(record: Record, split: Split = "train") -> Task:
    """The task of one record. Raises TaskSetError."""
    prompt = _parse(record.prompt, "prompt")
    if record.entry_point not in _functions(prompt):
        raise problem(f"prompt defines no function {record.entry_point!r}", field="entry_point")
    _parse(record.prompt + record.canonical_solution, "canonical_solution")
    name = re.sub(r"[^a-z0-9._-]+", "-", record.task_id.lower()).strip("-")
    data = {
        "id": name,
        "family": name,
        "split": split,
        "language": "python",
        "instruction": f"Complete the function `{record.entry_point}` in {SOLUTION}.\n\n{record.prompt}",
        "workspace": {SOLUTION: record.prompt},
        "solution_path": SOLUTION,
        "visible": {"runner": "asserts", "files": {VISIBLE: visible_tests(record, prompt)}},
        "hidden": {"runner": "asserts", "files": {HIDDEN: hidden_tests(record, prompt)}},
        "reference": {SOLUTION: record.prompt + record.canonical_solution},
    }
    try:
        return Task.model_validate(data)
    except ValidationError as error:
        raise TaskSetError(from_validation(error)) from None


def hidden_tests(record: Record, prompt: ast.Module) -> str:
    """The record's test as `test_*` functions."""
    test = _parse(record.test, "test")
    check = _functions(test).get("check")
    if check is None or len(check.args.args) != 1:
        raise problem("defines no check(candidate)", field="test")
    helpers = _helpers(test, prompt, record)
    head = f"from solution import {record.entry_point}\n\n"
    asserts = [node for node in check.body if isinstance(node, ast.Assert) and not _trivial(node)]
    if len(test.body) > 2 or len(asserts) < 2 or not all(_simple(node) for node in check.body):
        return f"{head}{helpers}{record.test}\n\ndef test_check():\n    check({record.entry_point})\n"
    argument = check.args.args[0].arg
    tests = [
        f"def test_{number:02}():\n    {argument} = {record.entry_point}\n    {ast.unparse(node)}\n"
        for number, node in enumerate(asserts, 1)
    ]
    return head + helpers + "\n\n".join(tests)


def visible_tests(record: Record, prompt: ast.Module) -> str:
    """The examples of the prompt's docstring; where none can be used, that the function exists."""
    head = f"from solution import {record.entry_point}\n\n"
    text = ast.get_docstring(_functions(prompt)[record.entry_point]) or ""
    tests = [
        f"def test_example_{number}():\n    assert {source} == {want}\n"
        for number, (source, want) in enumerate(_examples(text, record.entry_point), 1)
        if (record.task_id, source) not in WRONG_EXAMPLES
    ]
    exists = f"def test_exists():\n    assert callable({record.entry_point})\n"
    return head + "\n\n".join(tests or [exists])


def _examples(text: str, entry_point: str) -> Iterator[tuple[str, str]]:
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return
    for example in examples:
        try:
            ast.literal_eval(example.want.strip())
            source = ast.parse(example.source.strip(), mode="eval")
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if entry_point in _names(source):
            yield ast.unparse(source), example.want.strip()


def _helpers(test: ast.Module, prompt: ast.Module, record: Record) -> str:
    """Source of the prompt's functions that the test uses, with the prompt's imports."""
    wanted = _names(test) - {record.entry_point} - set(vars(builtins))
    functions = [node for name, node in _functions(prompt).items() if name in wanted]
    if not functions:
        return ""
    imports = [node for node in prompt.body if isinstance(node, ast.Import | ast.ImportFrom)]
    pieces = [ast.get_source_segment(record.prompt, node) or "" for node in [*imports, *functions]]
    return "\n\n".join(pieces) + "\n\n\n"


def _record(line: bytes) -> Record:
    try:
        data: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise problem(f"not JSON: {error}") from None
    if not isinstance(data, dict):
        raise problem("not a JSON object")
    bad = [name for name in FIELDS if not isinstance(data.get(name), str) or not data[name].strip()]
    if bad:
        raise TaskSetError([Problem("missing, empty or not text", field=name) for name in bad])
    return Record(**{name: data[name] for name in FIELDS})


def _lines(stream: BinaryIO, file: str, problems: list[Problem]) -> Iterator[tuple[int, bytes]]:
    """Numbered lines that are not blank; a broken gzip stream or a line above the limit is a problem."""
    magic = stream.read(2)
    stream.seek(0)
    source: Any = gzip.GzipFile(fileobj=stream) if magic == GZIP_MAGIC else stream
    number = total = 0
    try:
        while line := source.readline(MAX_LINE_BYTES + 1):
            number += 1
            total += len(line)
            if len(line) > MAX_LINE_BYTES or total > MAX_BYTES:
                problems.append(Problem("too long; the rest was not read", file, number))
                return
            if line.strip():
                yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        problems.append(Problem(f"broken gzip: {error}; the rest was not read", file, number + 1))


def _parse(source: str, field: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise problem(f"not Python: {error}", field=field) from None


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _simple(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assert | ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _trivial(node: ast.Assert) -> bool:
    return isinstance(node.test, ast.Constant)
