"""Keyset paging: a cursor names the last row that was shown, never a count of rows.

Invariants:
* every row that existed when the first page was read is shown exactly once, whatever is inserted meanwhile;
* no row is shown twice;
* a cursor only continues the query that made it (same filters, same order).
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from pydantic import BaseModel
from sqlalchemy import Select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from services.api.problems import ProblemError

T = TypeVar("T")
R = TypeVar("R")
Key = str | int | float
MAX_INT = 2**63 - 1


class Page(BaseModel, Generic[T]):
    """A page of a list. Pass `next_cursor` as `cursor` to go on; null: this was the last page."""

    items: list[T]
    next_cursor: str | None = None


def scope_of(**filters: object) -> str:
    """Fingerprint of a query, so that its cursors do not fit another one."""
    text = json.dumps(filters, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def encode_cursor(scope: str, key: Sequence[Key]) -> str:
    text = json.dumps([scope, *key], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, scope: str, types: Sequence[type]) -> list[Key]:
    """The key within a cursor. Raises a 422 problem when it is not one of this query."""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        found_scope, *found = json.loads(raw)
    except (ValueError, TypeError, RecursionError):
        raise _bad_cursor("it is not a cursor") from None
    if found_scope != scope:
        raise _bad_cursor("it belongs to a query with other filters or another order")
    key: list[Key] = found
    if len(key) != len(types) or not all(map(_fits, key, types)):
        raise _bad_cursor("it is not a cursor of this list")
    return key


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, bool):
        return False
    if kind is str:
        return isinstance(value, str) and "\0" not in value and value.isprintable()
    if kind is int:
        return isinstance(value, int) and abs(value) <= MAX_INT
    return isinstance(value, (int, float)) and abs(value) <= MAX_INT and math.isfinite(value)


def _bad_cursor(why: str) -> ProblemError:
    return ProblemError(422, "invalid-cursor", f"cursor: {why}")


async def fetch_page(
    session: AsyncSession,
    query: Select[R],
    key: Sequence[InstrumentedAttribute[Any]],
    types: Sequence[type],
    *,
    scope: str,
    cursor: str | None,
    limit: int,
    descending: bool,
) -> tuple[list[R], str | None]:
    """Rows of one page in the order of `key` (which must be unique), and the cursor of the next."""
    if cursor is not None:
        after = tuple_(*decode_cursor(cursor, scope, types))
        columns = tuple_(*key)
        query = query.where(columns < after if descending else columns > after)
    query = query.order_by(*(column.desc() if descending else column.asc() for column in key))
    rows = list((await session.scalars(query.limit(limit + 1))).all())
    if len(rows) <= limit:
        return rows, None
    rows = rows[:limit]
    return rows, encode_cursor(scope, [getattr(rows[-1], column.key) for column in key])
