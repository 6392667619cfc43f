"""Pieces that several responses share, and the identifiers that requests may name."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict

Json = dict[str, Any]

IDENT = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,159}$"
REFERENCE = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,159}(@[A-Za-z0-9][A-Za-z0-9._-]{0,63})?$"
MAX_NUMBER = 2**31 - 1

RunId = Annotated[str, Path(pattern=IDENT, description="Run id.")]
EpisodeId = Annotated[str, Path(pattern=IDENT, description="Episode id.")]
Number = Annotated[int, Path(ge=0, le=MAX_NUMBER)]
Cursor = Annotated[
    str | None, Query(max_length=512, description="`next_cursor` of the page before; same filters.")
]
Limit = Annotated[int, Query(ge=1, le=500, description="Items per page.")]


class View(BaseModel):
    """A response model that reads database rows."""

    model_config = ConfigDict(from_attributes=True)


class Accepted(BaseModel):
    """202: the command is on its way; the orchestrator has not acted on it yet."""

    id: str
    status: str = "accepted"
    location: str
    """Where the result will be."""
