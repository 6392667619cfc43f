"""The two demos: what they train, on what, and how they are evaluated."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

Name = Literal["smollm2", "tiny"]
ENGINES = ("auto", "vllm", "torch")
EXAMPLES = Path("examples")


@dataclass(frozen=True)
class Preset:
    """One demo."""

    name: Name
    tasks: Path
    """Task set folder, relative to the project."""
    run: Path
    """Run document."""
    engine: str
    eval_samples: int
    """Episodes per held-out task, at the training temperature."""
    env: dict[str, str] = field(default_factory=dict)
    """Settings for every service."""


PRESETS: dict[str, Preset] = {
    "smollm2": Preset(
        name="smollm2",
        tasks=EXAMPLES / "tasks" / "starter",
        run=EXAMPLES / "runs" / "smollm2.yaml",
        engine="auto",
        eval_samples=3,
    ),
    "tiny": Preset(
        name="tiny",
        tasks=EXAMPLES / "tasks" / "tiny",
        run=EXAMPLES / "runs" / "tiny.yaml",
        engine="torch",
        eval_samples=8,
        # A model this small is slower on two threads than on one.
        env={"SANDPIPER_TORCH__THREADS": "1", "SANDPIPER_LEARNER__THREADS": "1", "OMP_NUM_THREADS": "1"},
    ),
}


def training_document(root: Path, preset: Preset, task_set: str, steps: int | None) -> dict[str, Any]:
    """The preset's run document on the uploaded task set, with another number of steps where asked."""
    document: dict[str, Any] = yaml.safe_load((root / preset.run).read_text())
    document["tasks"] = {**document["tasks"], "task_set": task_set}
    if steps is not None:
        document["budget"] = {**document.get("budget", {}), "steps": steps}
    return document


def evaluation_document(
    preset: Preset, training: dict[str, Any], policy: dict[str, Any], label: str
) -> dict[str, Any]:
    """The same policy settings on the held-out split."""
    shared: tuple[str, ...] = ("sampling", "deadlines", "limits")
    kept = {name: training[name] for name in shared if name in training}
    return {
        "name": f"{preset.name}-{label}",
        "mode": "eval",
        "policy": policy,
        "tasks": {"task_set": training["tasks"]["task_set"], "split": "heldout"},
        "samples_per_task": preset.eval_samples,
        "seed": 7,
        **kept,
    }
