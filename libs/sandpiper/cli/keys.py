"""`sandpiper api-key …`: makes keys; nothing is sent anywhere."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from pathlib import Path
from typing import Annotated

import typer

from sandpiper.cli.errors import BadInput
from sandpiper.cli.options import AsJson
from sandpiper.cli.render import print_json

app = typer.Typer(no_args_is_help=True, help="Keys for an API that is not bound to loopback.")
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@app.callback()
def keys() -> None:
    """Keys for an API that is not bound to loopback."""


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Who will use it; appears in logs and as requested_by.")],
    file: Annotated[Path | None, typer.Option(help="Append the hash to this keys file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make an API key. The key is shown once; the service only ever has its SHA-256.

    Example:

        sandpiper api-key create anna --file keys && export SANDPIPER_HTTP__KEYS_FILE=$PWD/keys
    """
    if not NAME.fullmatch(name):
        raise BadInput("a name has lower-case letters, digits, '.', '_' and '-'")
    key = f"spk_{secrets.token_urlsafe(32)}"
    digest = hashlib.sha256(key.encode()).hexdigest()
    if file is not None:
        append(file, f"{name} {digest}\n")
    if as_json:
        print_json({"name": name, "key": key, "sha256": digest})
        return
    typer.echo(f"key     {key}")
    typer.echo(f"sha256  {digest}")
    typer.echo(f"\nLine for the keys file{' (appended)' if file else ''}:\n{name} {digest}")


def append(file: Path, line: str) -> None:
    """Add a line to a keys file that only its owner can read; the name must be new."""
    name = line.split(maxsplit=1)[0]
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(handle, "r+") as out:
        text = out.read()
        if any(known.split()[:1] == [name] for known in text.splitlines()):
            raise BadInput(f"{file} has a key of {name!r} already")
        out.write(("" if not text or text.endswith("\n") else "\n") + line)
