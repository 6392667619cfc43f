"""Typed failures of getting hold of a policy."""

from __future__ import annotations

from typing import Literal

Why = Literal["not_installed", "not_found", "unreachable", "invalid", "too_large"]


class PolicyUnavailable(Exception):
    """The policy that a run asks for cannot be loaded. `reason` is machine-readable, `detail` is for
    people."""

    def __init__(self, reason: Why, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
