"""`sandpiper policy …`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from sandpiper.cli.client import SandpiperClient
from sandpiper.cli.context import Connection
from sandpiper.cli.errors import BadInput
from sandpiper.cli.options import AsJson, RunArgument, RunAtVersion, at_version
from sandpiper.cli.render import console, print_json, table, when

app = typer.Typer(no_args_is_help=True, help="Policy versions that runs published.")


@app.command("list")
def list_policies(ctx: typer.Context, run: RunArgument, as_json: AsJson = False) -> None:
    """Versions of a run, oldest first. Old versions may no longer be kept (see limits.keep_policies)."""
    connection: Connection = ctx.obj
    with connection.client() as client:
        found = list(client.policies(run))
    if as_json:
        print_json(found)
        return
    rows = [
        (item["version"], item["step"], when(item["published_at"]), item["weights_sha256"]) for item in found
    ]
    console().print(table(("version", "step", "published", "weights sha256"), rows))


@app.command()
def export(
    ctx: typer.Context,
    run: RunAtVersion,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to make.")],
    version: Annotated[int | None, typer.Option(min=0, help="The newest by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Save a version as a folder that transformers loads; every file is checked against its SHA-256.

    Examples:

        sandpiper policy export run-01… --out my-policy

        sandpiper policy export run-01…@3 --out my-policy

        python -c "from transformers import AutoModelForCausalLM as M; M.from_pretrained('my-policy')"
    """
    run, named = at_version(run)
    if named is not None and version is not None:
        raise BadInput(f"give the version once, as {run}@{named} or as --version {version}")
    connection: Connection = ctx.obj
    with connection.client() as client:
        folder = _export(client, run, version if named is None else named, out)
    if as_json:
        print_json({"folder": str(folder)})
    else:
        typer.echo(str(folder))


def _export(client: SandpiperClient, run: str, version: int | None, out: Path) -> Path:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, transient=True, disable=not console().is_terminal) as bars:
        known = {}

        def show(name: str, size: int, total: int) -> None:
            if name not in known:
                known[name] = bars.add_task(name, total=total)
            bars.update(known[name], completed=size)

        return client.export_policy(run, out, version, show)
