"""The `sandpiper` command."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sandpiper.cli import episodes, keys, policies, runs, tasks
from sandpiper.cli.context import Connection
from sandpiper.cli.errors import INTERRUPTED, ClientError
from sandpiper.cli.evaluate import evaluate

STACK = "sandpiper.cli.stack"
STACK_COMMANDS = ("up", "down", "status", "logs")
HELP = """Post-trains language models by letting them act.

First steps:

    sandpiper up                                          # the whole stack on this machine

    sandpiper tasks submit examples/tasks/starter

    sandpiper run create examples/runs/smollm2.yaml --wait

    sandpiper episode list RUN                            # what the policy did

    sandpiper eval --policy RUN --tasks starter           # pass@1 on held-out tasks

    sandpiper policy export RUN --out my-policy

Exit status: 0 done, 1 refused or failed, 2 wrong usage, 3 the API cannot be reached, 4 a run that was waited
for did not succeed, 5 waiting took too long, 130 interrupted.
"""


class Commands(TyperGroup):
    """All commands; those of the embedded stack are imported on use. A failure is told in one line."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*STACK_COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in STACK_COMMANDS:
            return typer.main.get_group(import_module(STACK).app).commands[cmd_name]
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ClientError as error:
            print(f"sandpiper: {error}", file=sys.stderr)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # The reader has gone (`| head`): nothing more to say, and nothing to flush at the exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None


app = typer.Typer(
    cls=Commands,
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(tasks.app, name="tasks")
app.add_typer(runs.app, name="run")
app.add_typer(episodes.app, name="episode")
app.add_typer(policies.app, name="policy")
app.command("eval")(evaluate)
app.add_typer(keys.app, name="api-key")


@app.callback()
def connect(
    ctx: typer.Context,
    api: Annotated[
        str | None,
        typer.Option(
            envvar="SANDPIPER_API", help="URL of the API; by default that of the embedded stack found nearby."
        ),
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(envvar="SANDPIPER_API_KEY", help="API key, where the API wants one.", show_envvar=True),
    ] = None,
) -> None:
    """How to reach the API."""
    ctx.obj = Connection(api, api_key)
