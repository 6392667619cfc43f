"""`sandpiper up | down | status | logs`: the embedded stack of a data folder."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sandpiper.cli import stack_logs
from sandpiper.embedded.errors import StackError
from sandpiper.embedded.launch import Launched, launch, shut_down
from sandpiper.embedded.options import SERVICES, EngineKind, StackOptions
from sandpiper.embedded.state import DataFolder, StackState

app = typer.Typer(help="The embedded stack: everything on this machine, no Docker.")
POLL_S = 0.5
COLOURS = {"ready": "green", "unhealthy": "red", "restarting": "yellow", "starting": "cyan"}

Data = Annotated[
    Path,
    typer.Option("--data", envvar="SANDPIPER_DATA_DIR", help="Folder that keeps everything of the stack."),
]
DEFAULT_DATA = Path(".sandpiper")


@app.command()
def up(
    data: Data = DEFAULT_DATA,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return once all is ready.")] = False,
    executors: Annotated[int, typer.Option(min=0, help="Processes of sandbox-executor.")] = 1,
    scale: Annotated[
        list[str] | None,
        typer.Option(metavar="SERVICE=N", help="Processes of a service (0 leaves it out). Repeatable."),
    ] = None,
    engine: Annotated[EngineKind, typer.Option(help="Inference engine.")] = "auto",
    host: Annotated[
        str, typer.Option(help="Address of the API; others than loopback need API keys.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the API; 0 takes any free one.")
    ] = 8080,
    broker_port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 0,
    postgres_port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 0,
    objects_port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 0,
) -> None:
    """Start broker, Postgres, S3 and the services; take up the data folder where it was left."""
    console = Console()
    options = StackOptions(
        data_dir=data,
        replicas=_replicas(executors, scale or []),
        engine=engine,
        api_host=host,
        api_port=port,
        broker_port=broker_port,
        postgres_port=postgres_port,
        objects_port=objects_port,
    )
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            launched = launch(
                options,
                with_parent=not detach,
                progress=lambda state: live.update(table(state), refresh=True),
            )
    except StackError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        console.print("stopped")
        raise typer.Exit(130) from None
    try:
        console.print(table(launched.first))
        console.print(_next_steps(launched.first, data, detach))
        if detach:
            launched.release()
        else:
            _stay(console, launched)
    except KeyboardInterrupt:
        console.print("stopping …")
        launched.stop()


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _stay(console: Console, launched: Launched) -> None:
    """Report what changes until the supervisor ends, which is a failure here."""
    seen = {process.name: process.state for process in launched.first.processes}
    while launched.process.poll() is None:
        state = launched.folder.read_state()
        for process in state.processes if state else []:
            if seen.get(process.name) != process.state:
                colour = COLOURS.get(process.state, "white")
                console.print(
                    f"{time.strftime('%H:%M:%S')} {process.name}: [{colour}]{process.state}[/] "
                    f"(restarts: {process.restarts})"
                )
                seen[process.name] = process.state
        time.sleep(POLL_S)
    _fail(f"the supervisor ended; see {launched.folder.logs / 'supervisor.log'}")


def _replicas(executors: int, scale: list[str]) -> dict[str, int]:
    replicas = dict.fromkeys(SERVICES, 1) | {"sandbox-executor": executors}
    for entry in scale:
        service, _, number = entry.partition("=")
        if service not in SERVICES or not number.isdigit():
            raise typer.BadParameter(
                f"{entry!r}: give SERVICE=N with one of {', '.join(SERVICES)}", param_hint="--scale"
            )
        replicas[service] = int(number)
    return replicas


@app.command()
def down(data: Data = DEFAULT_DATA) -> None:
    """Stop the stack of this data folder. Its data stays."""
    try:
        found = shut_down(DataFolder(data))
    except StackError as error:
        _fail(str(error))
    typer.echo("stopped" if found else f"no stack runs with data folder {data.absolute()}")


@app.command()
def status(
    data: Data = DEFAULT_DATA,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON (without secrets).")] = False,
) -> None:
    """Show each process. Exit status 0 when all are ready, 1 otherwise, 3 when no stack runs."""
    state = _read(DataFolder(data))
    if state is None:
        typer.echo(f"no stack runs with data folder {data.absolute()}")
        raise typer.Exit(3)
    if not state.supervisor_alive:
        _fail("the stack was killed; `sandpiper up` or `sandpiper down` clears up after it")
    if as_json:
        typer.echo(json.dumps(_public(state), indent=1))
    else:
        Console().print(table(state))
    if not all(process.state == "ready" for process in state.processes):
        raise typer.Exit(1)


@app.command()
def logs(
    name: Annotated[
        str | None, typer.Argument(help="A process such as `learner`; all when left out.")
    ] = None,
    data: Data = DEFAULT_DATA,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Last lines of each log.")] = 50,
) -> None:
    """Print what processes wrote."""
    files = stack_logs.files(DataFolder(data).logs)
    if name is not None and name not in files:
        _fail(f"no log of {name!r}; there are: {', '.join(files) or 'none'}")
    chosen = files if name is None else {name: files[name]}
    try:
        stack_logs.show(chosen, lines, follow, typer.echo)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _read(folder: DataFolder) -> StackState | None:
    try:
        return folder.read_state()
    except StackError as error:
        _fail(str(error))


def _public(state: StackState) -> dict[str, object]:
    shown = {"ready", "api_url", "bootstrap", "objects_endpoint", "processes", "supervisor_pid"}
    return state.model_dump(mode="json", include=shown)


def table(state: StackState) -> Table:
    """Processes with health and addresses."""
    result = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("process", "state", "pid", "restarts", "address"):
        result.add_column(heading)
    for process in state.processes:
        address = state.api_url if process.service == "api" else process.url
        result.add_row(
            process.name,
            Text(process.state, style=COLOURS.get(process.state, "")),
            str(process.pid or ""),
            str(process.restarts),
            address,
        )
    return result


def _next_steps(state: StackState, data: Path, detached: bool) -> str:
    lines = ["", f"API: {state.api_url}"] if state.api_url else [""]
    lines += ["Next:" if detached else "Next, in another terminal:"]
    if data != DEFAULT_DATA and "SANDPIPER_DATA_DIR" not in os.environ:
        lines += [f"  export SANDPIPER_DATA_DIR={shlex.quote(str(data.absolute()))}"]
    lines += [
        "  sandpiper tasks submit examples/tasks/starter",
        "  sandpiper run create examples/runs/smollm2.yaml",
        "  sandpiper logs -f",
        "  sandpiper down" if detached else "Ctrl-C stops everything.",
    ]
    return "\n".join(lines)


def _fail(message: str) -> NoReturn:
    print(f"sandpiper: {message}", file=sys.stderr)
    raise typer.Exit(1)
