"""`scripts/bench`: measurements of the whole system, each as one JSON object or a table."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from sandpiper.bench.loop import LoopTimes, episode_times, summary
from sandpiper.cli.client import SandpiperClient
from sandpiper.demo.presets import PRESETS, training_document
from sandpiper.embedded.launch import launch

ROOT = Path(__file__).resolve().parents[3]
app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)


@app.callback()
def benches() -> None:
    """Measurements of the whole system."""


@app.command()
def loop(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    preset: Annotated[str, typer.Option(help="smollm2 or tiny.")] = "tiny",
    steps: Annotated[int, typer.Option(min=1, help="Optimizer steps.")] = 6,
) -> None:
    """A whole training run: episodes/s, shares of time by stage, pipeline overhead per turn."""
    folder = Path(tempfile.mkdtemp(prefix="sandpiper-bench-"))
    try:
        result = _loop(preset, steps, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _show(result, as_json)


def _loop(preset: str, steps: int, folder: Path) -> dict[str, Any]:
    chosen = PRESETS[preset]
    running = launch(chosen.stack(folder), with_parent=True)
    try:
        with SandpiperClient(running.first.api_url) as client:
            task_set = client.submit_task_set(ROOT / chosen.tasks)
            created = client.create_run(training_document(ROOT, chosen, task_set["id"], steps))
            run = client.wait_run(created["id"], timeout_s=7200, on_progress=_progress)
            times = LoopTimes()
            for episode in client.episodes(run["id"]):
                if episode["passed"] is not None:
                    episode_times(times, client.episode(episode["id"]))
            return summary(times, run, list(client.steps(run["id"])))
    finally:
        running.stop()


def _progress(run: dict[str, Any]) -> None:
    print(f"\rstep {run['step']}/{run['steps_budget']}", end="", file=sys.stderr, flush=True)


def _show(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(result))
        return
    print(file=sys.stderr)
    for name, value in result.items():
        print(f"{name:26} {value}")


if __name__ == "__main__":
    app()
