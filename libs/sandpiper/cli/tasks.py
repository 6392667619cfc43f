"""`sandpiper tasks …`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sandpiper.cli.context import Connection
from sandpiper.cli.options import AsJson
from sandpiper.cli.render import console, print_json, table, when

app = typer.Typer(no_args_is_help=True, help="Task sets: submit, validate, look at.")


@app.command()
def submit(
    ctx: typer.Context,
    path: Annotated[Path, typer.Argument(help="A folder with taskset.yaml, a .jsonl or a .tar.zst file.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the set (required for .jsonl; else overrules taskset.yaml).")
    ] = None,
    version: Annotated[str | None, typer.Option(help="Version of the set.")] = None,
    as_json: AsJson = False,
) -> None:
    """Upload a task set. It is checked as a whole; one bad task refuses it and nothing is stored.

    Examples:

        sandpiper tasks submit examples/tasks/starter

        sandpiper tasks submit mine.jsonl --name mine --version 2
    """
    connection: Connection = ctx.obj
    with connection.client() as client:
        made = client.submit_task_set(path, name=name, version=version)
    if as_json:
        print_json(made)
        return
    splits = ", ".join(f"{count} {split}" for split, count in made["splits"].items())
    console().print(f"{made['name']}@{made['version']}: {made['task_count']} tasks ({splits})", markup=False)
    console().print(f"id {made['id']}", markup=False)


@app.command()
def validate(
    path: Annotated[Path, typer.Argument(help="A folder with taskset.yaml, a .jsonl or a .tar.zst file.")],
    only: Annotated[list[str] | None, typer.Option("--task", help="Only this task id. Repeatable.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Tasks at once.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Run every reference solution (must pass) and every untouched workspace (must fail), on this machine.

    Needs bubblewrap, no stack. Exit status 1 when a task does not hold.

    Example:

        sandpiper tasks validate examples/tasks/starter
    """
    from sandpiper.cli.validation import validate_path  # noqa: PLC0415 (heavy, and only this needs it)

    if not validate_path(path, only or [], jobs, as_json):
        raise typer.Exit(1)


@app.command("list")
def list_task_sets(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Option(help="Only this name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Task sets, newest first."""
    connection: Connection = ctx.obj
    with connection.client() as client:
        found = list(client.task_sets(name))
    if as_json:
        print_json(found)
        return
    rows = [
        (f"{item['name']}@{item['version']}", item["task_count"], when(item["created_at"]), item["id"])
        for item in found
    ]
    console().print(table(("task set", "tasks", "submitted", "id"), rows))


@app.command()
def show(
    ctx: typer.Context,
    reference: Annotated[str, typer.Argument(help="Id, name or name@version.")],
    split: Annotated[str | None, typer.Option(help="train or heldout.")] = None,
    as_json: AsJson = False,
) -> None:
    """A task set and its tasks.

    Example:

        sandpiper tasks show starter --split heldout
    """
    connection: Connection = ctx.obj
    with connection.client() as client:
        found = client.task_set(reference)
        tasks = list(client.tasks(found["id"], split=split))
    if as_json:
        print_json({**found, "tasks": tasks})
        return
    out = console()
    out.print(f"{found['name']}@{found['version']}  {found['id']}", markup=False)
    rows = [(task["id"], task["family"], task["split"], task["language"]) for task in tasks]
    out.print(table(("task", "family", "split", "language"), rows))
