"""Where the API is and who is calling: options, environment, or the embedded stack that runs nearby."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandpiper.cli.client import SandpiperClient

DEFAULT_URL = "http://127.0.0.1:8080"
STATE_FILE = "stack.json"
RETRY_S = 3.0
"""A person waits: better to say soon that nothing answers."""


@dataclass(frozen=True)
class Connection:
    """How commands reach the API."""

    api: str | None = None
    api_key: str | None = None

    def client(self) -> SandpiperClient:
        """A client; nothing is sent before it is used."""
        return SandpiperClient(self.api or discover(Path.cwd(), os.environ), self.api_key, retry_s=RETRY_S)


def discover(start: Path, environ: Mapping[str, str]) -> str:
    """URL of the embedded stack whose data folder is named, or lies in `start` or above; else the default."""
    named = environ.get("SANDPIPER_DATA_DIR")
    folders = [Path(named)] if named else [folder / ".sandpiper" for folder in (start, *start.parents)]
    for folder in folders:
        url = _url_of(folder / STATE_FILE)
        if url:
            return url
    return DEFAULT_URL


def _url_of(state: Path) -> str | None:
    try:
        url = json.loads(state.read_text()).get("api_url")
    except (OSError, ValueError, AttributeError):
        return None
    return url if isinstance(url, str) and url else None
