"""Shared fixtures: see `tests/stack.py`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.stack"]

# A busy machine makes single examples slow; how fast code is is measured by scripts/bench, not by tests.
settings.register_profile("sandpiper", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sandpiper")
