"""The field tables of docs/tasks.md and docs/runs.md are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from sandpiper import runs
from sandpiper.tasks import model

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        ("tasks.md", model.TaskLimits),
        ("tasks.md", model.RewardSpec),
        ("tasks.md", model.Task),
        ("runs.md", runs.RunDocument),
        ("runs.md", runs.PolicySource),
        ("runs.md", runs.TaskSelection),
        ("runs.md", runs.Algorithm),
        ("runs.md", runs.SamplingSettings),
        ("runs.md", runs.Budget),
        ("runs.md", runs.Deadlines),
        ("runs.md", runs.RunLimits),
    ],
)
def test_every_field_is_documented(page: str, kind: type[BaseModel]) -> None:
    words = set(re.findall(r"[a-z_]+", (DOCS / page).read_text()))
    assert not set(kind.model_fields) - words
