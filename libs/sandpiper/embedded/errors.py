"""What a person is told when the stack cannot run."""

from __future__ import annotations


class StackError(Exception):
    """The embedded stack could not start or be reached; the text says what to do."""
