"""Importers of public task formats. They parse, they never run code of a data set; each reports the records
that it cannot use by line, field and reason, and imports the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from sandpiper.tasks.model import Task
from sandpiper.tasks.problems import Problem


@dataclass(frozen=True)
class Imported:
    """What came of a file."""

    tasks: tuple[Task, ...]
    problems: tuple[Problem, ...]
