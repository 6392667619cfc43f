"""The one table of languages: how visible and hidden tests run, what files look like, how syntax is checked.

All argv run inside a sandbox with the workspace as working directory and the runners at `RUNNERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from sandpiper.tasks.model import Task, TaskLimits, TestSpec

WORKSPACE = "/workspace"
"""Where the workspace lies in every sandbox."""
RUNNERS = "/opt/sandpiper/runners"
"""Where the runner scripts lie, read-only, in every sandbox."""
VISIBLE_CPU_SHARE, VISIBLE_WALL_SHARE = 0.4, 0.8
"""Of the limits: what one visible test may take, so that the runner is still there to say so."""
PYTHON = ("/usr/bin/python3", "-I", "-S", "-B")
"""The system's interpreter without site packages, environment and bytecode files."""
PYTHON_SITE = ("/usr/bin/python3", "-I", "-B")
"""The same with site packages, for pytest."""


@dataclass(frozen=True)
class Language:
    """One row of the table."""

    name: str
    suffix: str
    solution_path: str
    """Where the solution lies unless the task says otherwise."""
    runner: str
    """The test runner unless the task says otherwise."""
    fences: tuple[str, ...]
    """Info strings of a fenced block that holds this language."""
    visible: Mapping[str, tuple[str, ...]]
    """Runner -> argv that reports to the policy; test files follow."""
    hidden: Mapping[str, tuple[str, ...]]
    """Runner -> argv that reports on the private descriptor; its plan arrives there too."""
    syntax: tuple[str, ...]
    """Argv that exits 0 when the file that follows parses."""


PYTHON_LANGUAGE = Language(
    name="python",
    suffix=".py",
    solution_path="solution.py",
    runner="asserts",
    fences=("python", "py", "python3", ""),
    visible={
        "asserts": (*PYTHON, f"{RUNNERS}/python_visible.py"),
        "pytest": (*PYTHON_SITE, f"{RUNNERS}/python_visible.py", "--pytest"),
    },
    hidden={
        "asserts": (*PYTHON, f"{RUNNERS}/python_hidden.py"),
        "pytest": (*PYTHON_SITE, f"{RUNNERS}/python_hidden.py"),
    },
    syntax=(*PYTHON, "-c", "import sys; compile(open(sys.argv[1], 'rb').read(), sys.argv[1], 'exec')"),
)
JAVASCRIPT_LANGUAGE = Language(
    name="javascript",
    suffix=".js",
    solution_path="solution.js",
    runner="node",
    fences=("javascript", "js", "node", ""),
    visible={
        "node": (
            "node",
            f"--test-reporter={RUNNERS}/node_reporter.cjs",
            "--test-reporter-destination=stdout",
            f"{RUNNERS}/node_visible.cjs",
        )
    },
    hidden={"node": (*PYTHON, f"{RUNNERS}/node_hidden.py")},
    syntax=("node", "--check"),
)
LANGUAGES: Mapping[str, Language] = {item.name: item for item in (PYTHON_LANGUAGE, JAVASCRIPT_LANGUAGE)}

MODULE_SUFFIXES = (".py", ".js", ".mjs", ".cjs")


def language_of(task: Task) -> Language:
    """The row of the task's language."""
    return LANGUAGES[task.language]


def test_files(spec: TestSpec) -> tuple[str, ...]:
    """The files of `spec` that hold tests: code named `test…` or `….test.…`; else every code file."""
    code = sorted(path for path in spec.files if path.endswith(MODULE_SUFFIXES))
    named = [path for path in code if _is_test_name(PurePosixPath(path).name)]
    return tuple(named or code)


test_files.__test__ = False  # type: ignore[attr-defined]


class HasVisibleTests(Protocol):
    """What `visible_argv` needs of a task: the whole one, or the part that a policy may see."""

    @property
    def language(self) -> str: ...
    @property
    def visible(self) -> TestSpec: ...
    @property
    def limits(self) -> TaskLimits: ...


def visible_argv(task: HasVisibleTests) -> tuple[str, ...]:
    """Argv that runs the visible tests; the files of `task.visible` must lie in the workspace."""
    argv = LANGUAGES[task.language].visible[task.visible.runner]
    if task.visible.runner == "asserts":
        limits = task.limits
        argv += ("--cpu", f"{VISIBLE_CPU_SHARE * limits.cpu_s:g}")
        argv += ("--wall", f"{VISIBLE_WALL_SHARE * limits.wall_s:g}")
    return (*argv, *test_files(task.visible))


def hidden_argv(task: Task) -> tuple[str, ...]:
    """Argv that runs the hidden tests; needs the private channel, where the plan arrives."""
    return language_of(task).hidden[task.hidden.runner]


def syntax_argv(task: Task, path: str) -> tuple[str, ...]:
    """Argv that exits 0 when `path` parses."""
    return (*language_of(task).syntax, path)


def _is_test_name(name: str) -> bool:
    stem = name.rsplit(".", 1)[0]
    return stem.startswith("test") or stem.endswith(("_test", ".test", "-test", ".spec"))
