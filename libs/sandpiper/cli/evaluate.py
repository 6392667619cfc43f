"""`sandpiper eval`: pass@1 of a policy version on a task set."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Annotated, Any

import typer

from sandpiper.cli.client import SandpiperClient
from sandpiper.cli.context import Connection
from sandpiper.cli.errors import RUN_FAILED, BadInput
from sandpiper.cli.options import AsJson, Timeout, at_version
from sandpiper.cli.render import console, duration, percent, print_json, table
from sandpiper.cli.transport import Json
from sandpiper.cli.watch import watch_run
from sandpiper.demo.stats import pass_rate, wilson

RUN = re.compile(r"run-[a-z0-9]+(@\d+)?")


def evaluate(
    ctx: typer.Context,
    policy: Annotated[
        str, typer.Option(help="RUN@VERSION, RUN (its newest), starter, tiny, hub:ID or path:FOLDER.")
    ],
    tasks: Annotated[str, typer.Option(help="Task set: id, name or name@version.")],
    split: Annotated[str, typer.Option(help="heldout, train or all.")] = "heldout",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many tasks.")] = None,
    samples: Annotated[int, typer.Option(min=1, help="Episodes per task.")] = 1,
    temperature: Annotated[float, typer.Option(min=0, max=4, help="0 is greedy.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of the sampling.")] = 0,
    by_task: Annotated[
        bool, typer.Option("--by-task", help="Also show the rate of each task (--json has it anyway).")
    ] = False,
    timeout: Timeout = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a policy version: pass@1 with a Wilson 95 % interval.

    Episodes that infrastructure failed are not counted as failures of the policy; they are reported.

    Examples:

        sandpiper eval --policy starter --tasks starter

        sandpiper eval --policy starter --tasks starter --split train --samples 8 --temperature 1 --by-task

        sandpiper eval --policy run-01…@8 --tasks starter --split heldout --json
    """
    selection: Json = {"task_set": tasks, "split": None if split == "all" else split, "limit": limit}
    document = {
        "name": "eval",
        "mode": "eval",
        "policy": policy_source(policy),
        "tasks": selection,
        "sampling": {"temperature": temperature},
        "samples_per_task": samples,
        "seed": seed,
    }
    connection: Connection = ctx.obj
    with connection.client() as client:
        made = client.create_run(document)
        if not as_json:
            console().print(f"run {made['id']}", markup=False)
        done = watch_run(client, made["id"], timeout, quiet=as_json)
        result = summarise(client, done, policy, tasks, split)
    if as_json:
        print_json(result)
    else:
        _print(result)
        if by_task and result["by_task"]:
            _print_tasks(result["by_task"])
    if done["state"] != "succeeded":
        raise typer.Exit(RUN_FAILED)


def policy_source(text: str) -> Json:
    """The `policy` of a run document."""
    if text in ("starter", "tiny"):
        return {"kind": text}
    kind, colon, rest = text.partition(":")
    if colon and rest and kind == "hub":
        return {"kind": "hub", "hub_id": rest}
    if colon and rest and kind == "path":
        return {"kind": "path", "path": rest}
    if not RUN.fullmatch(text):
        raise BadInput(f"--policy {text!r}: give RUN@VERSION, RUN, starter, tiny, hub:ID or path:FOLDER")
    run, version = at_version(text)
    source: Json = {"kind": "run", "run_id": run}
    return source if version is None else {**source, "version": version}


def summarise(client: SandpiperClient, run: Json, policy: str, tasks: str, split: str) -> Json:
    """Counts over all episodes that have a verdict."""
    outcomes: dict[str, list[bool]] = defaultdict(list)
    without = 0
    for episode in client.episodes(run["id"]):
        if episode["passed"] is None:
            without += 1
        else:
            outcomes[episode["task_id"]].append(episode["passed"])
    passed = sum(sum(values) for values in outcomes.values())
    total = sum(map(len, outcomes.values()))
    interval = wilson(passed, total)
    return {
        "run_id": run["id"],
        "state": run["state"],
        "reason": run["reason"],
        "policy": policy,
        "policy_run_id": run["policy_run_id"],
        "policy_version": run["policy_version"],
        "task_set_id": run["task_set_id"],
        "tasks": tasks,
        "split": split,
        "task_count": len(outcomes),
        "episodes": total,
        "passed": passed,
        "pass_at_1": pass_rate(outcomes),
        "ci_low": interval.low,
        "ci_high": interval.high,
        "without_verdict": without,
        "by_task": {
            task: {"passed": sum(values), "episodes": len(values)}
            for task, values in sorted(outcomes.items())
        },
        "seconds": run["progress"]["elapsed_s"],
    }


def _print(result: dict[str, Any]) -> None:
    out = console()
    if result["episodes"]:
        _print_rate(result)
    if result["without_verdict"]:
        out.print(f"{result['without_verdict']} episodes have no verdict and are not counted", markup=False)
    if result["state"] != "succeeded":
        out.print(
            f"the evaluation is {result['state']}: {result['reason'] or 'no reason given'}", markup=False
        )


def _print_rate(result: dict[str, Any]) -> None:
    console().print(
        f"pass@1 {percent(result['pass_at_1'])}  "
        f"(95 % interval {percent(result['ci_low'])} to {percent(result['ci_high'])}; "
        f"{result['passed']} of {result['episodes']} episodes on {result['task_count']} tasks, "
        f"{duration(result['seconds'])})",
        markup=False,
    )


def _print_tasks(by_task: dict[str, dict[str, int]]) -> None:
    """Hardest first."""
    rows = sorted((counts["passed"] / counts["episodes"], task, counts) for task, counts in by_task.items())
    console().print(
        table(
            ("task", "passed", "episodes", "pass@1"),
            [(task, counts["passed"], counts["episodes"], percent(rate)) for rate, task, counts in rows],
        )
    )
