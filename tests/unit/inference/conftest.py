"""Tiny model folders and a started torch engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from transformers.utils import logging as transformers_logging

from services.inference.engines.torch_engine import TorchEngine
from tests.unit.inference.tiny_model import make_engine, make_tiny

transformers_logging.disable_progress_bar()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder; do not write to it."""
    return make_tiny(tmp_path_factory.mktemp("tiny") / "a", seed=0)


@pytest.fixture(scope="session")
def tiny_other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Other weights for the same model."""
    return make_tiny(tmp_path_factory.mktemp("tiny") / "b", seed=1)


@pytest.fixture
async def engine(tiny: Path) -> AsyncIterator[TorchEngine]:
    """Version 3 of `tiny`, running."""
    made = make_engine()
    await made.start(tiny, version=3)
    yield made
    await made.stop()
