"""`scripts/demo`: starts the embedded stack, trains, shows whether the policy got better, writes a report."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from sandpiper.cli.client import SandpiperClient
from sandpiper.cli.errors import ClientError
from sandpiper.demo.flow import DemoFailedError, Measured, interval_of, measure, summary
from sandpiper.demo.presets import ENGINES, PRESETS, Preset, evaluation_document, training_document
from sandpiper.demo.report import Report
from sandpiper.embedded.errors import StackError
from sandpiper.embedded.launch import launch

ROOT = Path(__file__).resolve().parents[3]


def say(text: str) -> None:
    """One line of progress, with the time."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


class Watcher:
    """Prints a line when a run moved, at most every few seconds."""

    def __init__(self, every_s: float = 10.0) -> None:
        self._every_s = every_s
        self._shown: tuple[Any, ...] = ()
        self._at = 0.0

    def __call__(self, run: dict[str, Any]) -> None:
        """Show `run` if there is news."""
        counts, progress = run["episodes"], run["progress"]
        news = (run["id"], run["state"], run["step"])
        if news == self._shown and time.monotonic() - self._at < self._every_s:
            return
        self._shown, self._at = news, time.monotonic()
        parts = [run["state"]]
        if run["mode"] == "train":
            parts.append(f"step {run['step']}/{run['steps_budget']}")
        parts.append(f"{counts['graded']} graded, {counts['in_flight']} in flight")
        if progress["recent_pass_rate"] is not None:
            parts.append(f"pass {100 * progress['recent_pass_rate']:.0f} %")
        if progress["recent_reward"] is not None:
            parts.append(f"reward {progress['recent_reward']:+.2f}")
        parts.append(f"{progress['tokens_per_s']:.0f} tokens/s")
        if progress["remaining_s"] is not None:
            parts.append(f"about {progress['remaining_s'] / 60:.0f} min left")
        say("  " + " · ".join(parts))


@contextmanager
def stack(data: Path, preset: Preset) -> Iterator[SandpiperClient]:
    """The embedded stack with a client, stopped whatever happens."""
    say("starting broker, Postgres, S3 and the six services")
    running = launch(preset.stack(data), with_parent=True)
    try:
        say(f"api {running.first.api_url} · logs {data / 'logs'}")
        with SandpiperClient(running.first.api_url) as client:
            yield client
    finally:
        say("stopping the stack")
        running.stop()


def write_report(folder: Path, preset: Preset, measured: Measured) -> Path:
    """The HTML report; returns its path."""
    report = Report(
        title=f"Sandpiper demo: {preset.name}",
        summary=summary(preset.name, measured),
        before=interval_of(measured.before),
        after=interval_of(measured.after),
        gain=measured.gain(),
        steps=measured.steps,
        episodes=measured.examples,
    )
    path = folder / f"sandpiper-demo-{preset.name}.html"
    path.write_text(report.html())
    return path


def main(
    preset: Annotated[
        str, typer.Option(help="smollm2 (a real model) or tiny (a toy, for a quick look).")
    ] = "smollm2",
    engine: Annotated[
        str | None, typer.Option(help="auto, vllm or torch; default: the preset's (auto takes the faster).")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Optimizer steps; default: the preset's.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the numbers to this file ('-': standard output).")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Data folder to keep; default: a temporary one, removed at the end.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path(),
) -> None:
    """Train a real language model by reinforcement learning in real sandboxes, and see whether it got better.

    Evaluates the held-out tasks, trains, evaluates again, prints both with a 95 % interval of the gain, and
    writes an HTML report with curves and example episodes.
    """
    if preset not in PRESETS:
        raise typer.BadParameter(f"one of {', '.join(PRESETS)}", param_hint="--preset")
    if engine not in (None, *ENGINES):
        raise typer.BadParameter(f"one of {', '.join(ENGINES)}", param_hint="--engine")
    chosen = PRESETS[preset] if engine is None else replace(PRESETS[preset], engine=engine)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up like Ctrl-C
    folder = data or Path(tempfile.mkdtemp(prefix="sandpiper-demo-"))
    try:
        measured = _run(chosen, steps, folder)
    except (DemoFailedError, ClientError, StackError) as error:
        say(f"failed: {error}")
        _keep_logs(folder, out)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        say("interrupted")
        raise typer.Exit(130) from None
    finally:
        if data is None:
            shutil.rmtree(folder, ignore_errors=True)
    _finish(chosen, measured, out, json_file)


def _run(preset: Preset, steps: int | None, folder: Path) -> Measured:
    with stack(folder, preset) as client:
        task_set = client.submit_task_set(ROOT / preset.tasks)
        say(f"task set {task_set['id']}: {task_set['task_count']} tasks")
        training = training_document(ROOT, preset, task_set["id"], steps)
        return measure(client, training, partial(evaluation_document, preset, training), say, Watcher())


def _finish(preset: Preset, measured: Measured, out: Path, json_file: Path | None) -> None:
    numbers, gain = summary(preset.name, measured), measured.gain()
    path = write_report(out, preset, measured)
    say(
        f"held-out pass rate {100 * numbers['pass_before']:.1f} % → {100 * numbers['pass_after']:.1f} %, "
        f"gain {100 * gain.value:+.1f} points (95 % interval {100 * gain.low:+.1f} to {100 * gain.high:+.1f})"
    )
    if not gain.excludes_zero():
        say("the interval includes zero: this run does not show an improvement")
    elif gain.high < 0:
        say("the policy got worse: look at the steps' entropy in the report, and lower learning_rate")
    say(f"report: {path.resolve()}")
    if json_file is not None:
        text = json.dumps(numbers)
        if str(json_file) == "-":
            print(text)
        else:
            json_file.write_text(text + "\n")


def _keep_logs(folder: Path, out: Path) -> None:
    logs = folder / "logs"
    if logs.is_dir():
        kept = out / f"sandpiper-demo-logs-{os.getpid()}"
        shutil.copytree(logs, kept, dirs_exist_ok=True)
        say(f"logs kept in {kept.resolve()}")


if __name__ == "__main__":
    typer.run(main)
