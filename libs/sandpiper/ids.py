"""Identifiers: prefixed ULIDs for new things, stable hashes for things that a retry must find again."""

from __future__ import annotations

import hashlib

from ulid import ULID


def new_id(prefix: str) -> str:
    """A fresh, time-sortable id such as `run-01j9…`."""
    return f"{prefix}-{str(ULID()).lower()}"


def derived_id(prefix: str, *parts: object) -> str:
    """The same id for the same parts, for idempotent requests and commands."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()
    return f"{prefix}-{digest[:26]}"
