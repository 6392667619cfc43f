"""Agent protocols: how a reply becomes an action, and a result becomes an observation."""

from __future__ import annotations

from sandpiper.tasks.model import HarnessName

from .protocol import Action, Harness
from .shell import ShellHarness
from .single_file import SingleFileHarness

HARNESSES: dict[HarnessName, Harness] = {
    "single-file": SingleFileHarness(),
    "shell": ShellHarness(),
}

__all__ = ["HARNESSES", "Action", "Harness"]
