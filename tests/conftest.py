"""Shared fixtures: see `tests/stack.py`."""

from __future__ import annotations

pytest_plugins = ["tests.stack"]
