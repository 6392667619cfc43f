"""What can go wrong between a client and the API, and the exit status of each.

Exit statuses of `sandpiper`: 0 done · 1 the request was refused or failed · 2 wrong usage · 3 the API cannot
be reached · 4 a run that was waited for failed or was cancelled · 5 waiting took too long · 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REFUSED, USAGE, UNREACHABLE, RUN_FAILED, TOO_LONG, INTERRUPTED = 1, 2, 3, 4, 5, 130
SHOWN = 10


class ClientError(Exception):
    """Base of everything that the client raises. `str()` is fit to be shown to a person."""

    exit_code = REFUSED


class ApiError(ClientError):
    """The API answered with a problem document (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = dict(problem)
        self.type = str(problem.get("type", "about:blank"))
        self.detail = str(problem.get("detail") or problem.get("title") or f"HTTP status {status}")
        self.errors: list[dict[str, Any]] = list(problem.get("errors") or [])
        super().__init__(self.detail)

    def __str__(self) -> str:
        """The detail, and below it where each error lies when there is more than one."""
        lines = [f"{self.detail} (HTTP {self.status})"]
        if len(self.errors) > 1:
            lines += [f"  {describe(error)}" for error in self.errors[:SHOWN]]
        if len(self.errors) > SHOWN:
            lines.append(f"  … and {len(self.errors) - SHOWN} more")
        return "\n".join(lines)


class Unreachable(ClientError):
    """Nothing answered at the URL, or what answered was not the API."""

    exit_code = UNREACHABLE


class BadInput(ClientError):
    """A local file or argument cannot be used."""

    exit_code = USAGE


class Damaged(ClientError):
    """Downloaded bytes do not have the digest that was promised."""


class WaitTimeout(ClientError):
    """What was waited for did not happen in time."""

    exit_code = TOO_LONG


def describe(error: Mapping[str, Any]) -> str:
    """`file: line 3: field: message` of one entry of `errors`."""
    line = f"line {error['line']}" if error.get("line") is not None else None
    place = [str(part) for part in (error.get("file"), line, error.get("field")) if part]
    return ": ".join([*place, str(error.get("message", ""))])
