"""Leftovers of dead executors: one that cannot be removed stops nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.sandbox_executor.backend import reaper


class Tree:
    """Two dead instances, of which the first cannot be cleared now."""

    def __init__(self) -> None:
        self.cleared: list[str] = []

    def instances(self) -> list[str]:
        return ["stubborn", "plain"]

    def clear(self, instance: str) -> int:
        if instance == "stubborn":
            raise OSError(16, "Device or resource busy")
        self.cleared.append(instance)
        return 3


def test_a_group_that_holds_out_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaper, "owner_is_dead", lambda _: True)
    monkeypatch.setattr(reaper, "_marked_processes", list)
    (tmp_path / "sandpiper-1").mkdir()
    tree: Any = Tree()
    assert reaper.reap("own", tree, tmp_path) == 3 + 1
    assert tree.cleared == ["plain"]
    assert not list(tmp_path.iterdir())
