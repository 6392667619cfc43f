"""The two demos: what they train, on what, and how they are evaluated."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from sandpiper.embedded.options import SERVICES, StackOptions
from sandpiper.machine import multiplies_bf16

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
    service_env: dict[str, dict[str, str]] = field(default_factory=dict)
    """Settings of services."""
    torch_replicas: int = 1
    """Inference processes where the torch engine generates on a CPU: it scales better by processes than by
    threads, which wait for one another whenever one of them loses its core."""

    def stack(self, data_dir: Path) -> StackOptions:
        """Options of the embedded stack for this demo."""
        on_torch = self.engine == "torch" or (self.engine == "auto" and not multiplies_bf16())
        replicas = dict.fromkeys(SERVICES, 1) | {"inference": self.torch_replicas if on_torch else 1}
        return StackOptions.model_validate(
            {
                "data_dir": data_dir,
                "api_port": 0,
                "engine": self.engine,
                "service_env": self.service_env,
                "replicas": replicas,
            }
        )


PRESETS: dict[str, Preset] = {
    "smollm2": Preset(
        name="smollm2",
        tasks=EXAMPLES / "tasks" / "starter",
        run=EXAMPLES / "runs" / "smollm2.yaml",
        engine="auto",
        eval_samples=2,
        torch_replicas=2,
    ),
    "tiny": Preset(
        name="tiny",
        tasks=EXAMPLES / "tasks" / "tiny",
        run=EXAMPLES / "runs" / "tiny.yaml",
        engine="torch",
        eval_samples=8,
        # A model this small is slower on two threads than on one.
        service_env={
            "inference": {"SANDPIPER_TORCH__THREADS": "1"},
            "learner": {"SANDPIPER_LEARNER__THREADS": "1"},
        },
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
