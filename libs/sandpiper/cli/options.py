"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Run id.")]
Timeout = Annotated[
    float | None, typer.Option("--timeout", min=0, help="Give up waiting after so many seconds (exit 5).")
]
