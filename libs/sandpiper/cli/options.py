"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from sandpiper.cli.errors import BadInput

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Run id.")]
RunAtVersion = Annotated[str, typer.Argument(metavar="RUN[@VERSION]", help="Run id, perhaps a version.")]
Timeout = Annotated[
    float | None, typer.Option("--timeout", min=0, help="Give up waiting after so many seconds (exit 5).")
]


def at_version(text: str) -> tuple[str, int | None]:
    """`RUN@3` is the run and 3, `RUN` the run and None. Raises BadInput for another kind of version."""
    run, at, number = text.partition("@")
    if at and not number.isdecimal():
        raise BadInput(f"{text!r}: a version is a whole number, as in {run}@3")
    return run, int(number) if at else None
