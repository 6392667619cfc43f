"""`sandpiper run …`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sandpiper.cli.context import Connection
from sandpiper.cli.documents import load_document
from sandpiper.cli.errors import RUN_FAILED
from sandpiper.cli.options import AsJson, RunArgument, Timeout
from sandpiper.cli.render import (
    console,
    duration,
    metric_names,
    number,
    percent,
    print_json,
    state_text,
    table,
    when,
)
from sandpiper.cli.transport import Json
from sandpiper.cli.watch import watch_run

app = typer.Typer(no_args_is_help=True, help="Runs: create, watch, control.")


@app.command()
def create(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Run document, YAML or JSON; - reads stdin.")],
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a field of the document. Repeatable."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Watch it until it ends.")] = False,
    timeout: Timeout = None,
    as_json: AsJson = False,
) -> None:
    """Start a run.

    Examples:

        sandpiper run create examples/runs/smollm2.yaml --wait

        sandpiper run create examples/runs/tiny.yaml --set budget.steps=4 --set tasks.limit=8
    """
    document = load_document(file, changes or [])
    connection: Connection = ctx.obj
    with connection.client() as client:
        made = client.create_run(document)
        if wait:
            if not as_json:
                console().print(f"run {made['id']}", markup=False)
            made = watch_run(client, made["id"], timeout, quiet=as_json)
    if as_json:
        print_json(made)
    elif not wait:
        out = console()
        out.print(f"run {made['id']} is {made['state']}", markup=False)
        out.print(f"watch it: sandpiper run watch {made['id']}", markup=False)
    if wait and made["state"] != "succeeded":
        raise typer.Exit(RUN_FAILED)


@app.command()
def watch(ctx: typer.Context, run: RunArgument, timeout: Timeout = None) -> None:
    """Follow a run live: step, reward, pass rate, tokens/s, staleness, sandboxes, time left, last episodes.

    Exit status 0 when it succeeded, 4 when it failed or was cancelled. Ctrl-C leaves the run running.
    """
    connection: Connection = ctx.obj
    with connection.client() as client:
        done = watch_run(client, run, timeout)
    if done["state"] != "succeeded":
        raise typer.Exit(RUN_FAILED)


@app.command("list")
def list_runs(
    ctx: typer.Context,
    state: Annotated[str | None, typer.Option(help="Only runs in this state.")] = None,
    as_json: AsJson = False,
) -> None:
    """Runs, newest first."""
    connection: Connection = ctx.obj
    with connection.client() as client:
        found = list(client.runs(state=state))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            item["id"],
            item["name"],
            item["mode"],
            state_text(item["state"]),
            f"{item['step']}/{item['steps_budget']}" if item["steps_budget"] is not None else "–",
            when(item["created_at"]),
        )
        for item in found
    ]
    console().print(table(("run", "name", "mode", "state", "step", "created"), rows))


@app.command()
def show(ctx: typer.Context, run: RunArgument, as_json: AsJson = False) -> None:
    """A run: its state, progress, newest steps and versions."""
    connection: Connection = ctx.obj
    with connection.client() as client:
        found = client.run(run)
    if as_json:
        print_json(found)
    else:
        _print_run(found)


def _print_run(run: Json) -> None:
    out, progress, counts = console(), run["progress"], run["episodes"]
    out.print(table(("", ""), [(name, value) for name, value in _facts(run) if value is not None]))
    states = ", ".join(f"{count} {state}" for state, count in counts["by_state"].items())
    out.print(f"episodes: {counts['total']} ({states or 'none'})", markup=False)
    out.print(
        f"pass rate {percent(progress['pass_rate'])} (newest: {percent(progress['recent_pass_rate'])}), "
        f"reward {number(progress['mean_reward'])} (newest: {number(progress['recent_reward'])})",
        markup=False,
    )
    if not run["recent_steps"]:
        return
    names = metric_names(run["recent_steps"], 9)
    rows = [
        (
            step["step"],
            step["policy_version"],
            step["seconds"],
            *(step["metrics"].get(name) for name in names),
        )
        for step in run["recent_steps"][-8:]
    ]
    out.print(table(("step", "version", "seconds", *names), rows))


def _facts(run: Json) -> list[tuple[str, object]]:
    return [
        ("run", f"{run['id']} ({run['name']}, {run['mode']})"),
        ("state", run["state"]),
        ("reason", run["reason"]),
        ("step", f"{run['step']} of {run['steps_budget']}" if run["steps_budget"] is not None else None),
        ("policy", f"{run['policy_run_id']}@{run['policy_version']}"),
        ("task set", run["task_set_id"]),
        ("created", when(run["created_at"])),
        ("elapsed", duration(run["progress"]["elapsed_s"])),
        ("left", duration(run["progress"]["remaining_s"])),
        ("trace", run["trace_id"]),
    ]


@app.command()
def pause(ctx: typer.Context, run: RunArgument, as_json: AsJson = False) -> None:
    """Start no more episodes; those in flight go on."""
    connection: Connection = ctx.obj
    with connection.client() as client:
        _print_state(client.pause_run(run), as_json)


@app.command()
def resume(ctx: typer.Context, run: RunArgument, as_json: AsJson = False) -> None:
    """Go on with a paused run."""
    connection: Connection = ctx.obj
    with connection.client() as client:
        _print_state(client.resume_run(run), as_json)


@app.command()
def cancel(ctx: typer.Context, run: RunArgument, as_json: AsJson = False) -> None:
    """End a run; what is in flight is discarded."""
    connection: Connection = ctx.obj
    with connection.client() as client:
        _print_state(client.cancel_run(run), as_json)


def _print_state(run: Json, as_json: bool) -> None:
    if as_json:
        print_json(run)
    else:
        console().print(f"run {run['id']} is {run['state']}", markup=False)
