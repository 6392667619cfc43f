"""`sandpiper episode …`"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from sandpiper.cli.context import Connection
from sandpiper.cli.episode_view import print_episode
from sandpiper.cli.options import AsJson, RunArgument
from sandpiper.cli.render import clean, console, print_json, state_text, table

app = typer.Typer(no_args_is_help=True, help="Episodes: what the policy did, turn by turn.")

EpisodeArgument = Annotated[str, typer.Argument(metavar="EPISODE", help="Episode id.")]


@app.command("list")
def list_episodes(
    ctx: typer.Context,
    run: RunArgument,
    state: Annotated[
        str | None, typer.Option(help="queued, generating, …, trained, discarded, failed.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    passed: Annotated[bool | None, typer.Option("--passed/--failed", help="Only these verdicts.")] = None,
    step: Annotated[int | None, typer.Option(help="Only those that this step trained.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Episodes of a run, newest first.

    Example:

        sandpiper episode list run-01… --passed --step 3
    """
    connection: Connection = ctx.obj
    with connection.client() as client:
        every = client.episodes(
            run, state=state, task=task, passed=passed, trained_step=step, page=min(limit, 200)
        )
        found = list(islice(every, limit))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            item["id"],
            item["task_id"],
            state_text(item["state"]),
            item["turn"] + 1,
            item["attempt"],
            item["reward"],
            item["verdict"] or item["reason"],
            item["version_max"],
            item["trained_step"],
        )
        for item in found
    ]
    columns = ("episode", "task", "state", "turns", "attempt", "reward", "verdict", "version", "step")
    console().print(table(columns, rows))


@app.command()
def show(
    ctx: typer.Context,
    episode: EpisodeArgument,
    full: Annotated[bool, typer.Option("--full", help="Whole prompts and outputs, not their ends.")] = False,
    as_json: AsJson = False,
) -> None:
    """Every turn: prompt, action, outcome, observation, timing; then tests, reward parts and trace id."""
    connection: Connection = ctx.obj
    with connection.client() as client:
        found = client.episode(episode)
    if as_json:
        print_json(found)
    else:
        print_episode(found, console(plain_width=120), full)


@app.command()
def log(
    ctx: typer.Context,
    episode: EpisodeArgument,
    turn: Annotated[int, typer.Argument(help="Turn, counted from 0.")] = 0,
) -> None:
    """What the program of a turn wrote."""
    connection: Connection = ctx.obj
    with connection.client() as client:
        typer.echo(clean(client.log(episode, turn)))


@app.command()
def snapshot(
    ctx: typer.Context,
    episode: EpisodeArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write (tar.zst).")],
    turn: Annotated[int | None, typer.Option(help="After this turn; the newest by default.")] = None,
) -> None:
    """Save the workspace after a turn."""
    connection: Connection = ctx.obj
    with connection.client() as client:
        out.write_bytes(client.snapshot(episode, turn))
    typer.echo(str(out))
