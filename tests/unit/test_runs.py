"""Numbers that no later part can hold are refused with the run document."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from sandpiper.runs import RunDocument


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        (None, "samples_per_task", 10**9),
        (None, "seed", 10**30),
        ("policy", "seed", 10**30),
        ("tasks", "limit", 10**30),
        ("algorithm", "betas", [2, 5]),
        ("algorithm", "betas", [0.9, 1.0]),
        ("algorithm", "warmup_steps", 10**30),
        ("budget", "steps", 10**30),
        ("budget", "episodes", 10**30),
        ("limits", "max_running", 10**30),
        ("limits", "max_new_tokens", 10**30),
        ("limits", "keep_policies", 10**30),
    ],
)
def test_out_of_bounds_names_the_field(part: str | None, field: str, value: Any) -> None:
    document: dict[str, Any] = {"tasks": {"task_set": "t"}}
    (document.setdefault(part, {}) if part else document)[field] = value
    with pytest.raises(ValidationError) as refused:
        RunDocument.model_validate(document)
    assert {field} <= {str(place) for error in refused.value.errors() for place in error["loc"]}
