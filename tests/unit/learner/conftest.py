"""Fixtures of the learner's tests."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker of tests that take tens of seconds."""
    config.addinivalue_line("markers", "slow: takes tens of seconds; leave out with -m 'not slow'")


@pytest.fixture(scope="session")
def learner_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One data folder for all: the tiny model is built once."""
    return tmp_path_factory.mktemp("learner")
