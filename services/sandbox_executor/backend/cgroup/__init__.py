"""Control groups, version 1 and 2, behind one small interface; None where this process may not make any."""

from __future__ import annotations

from pathlib import Path

from services.sandbox_executor.backend.cgroup.base import GroupTree
from services.sandbox_executor.backend.cgroup.v1 import TreeV1
from services.sandbox_executor.backend.cgroup.v2 import TreeV2

__all__ = ["GroupTree", "find_tree"]


def find_tree(
    instance: str, mounts: Path = Path("/proc/mounts"), own: Path = Path("/proc/self/cgroup")
) -> GroupTree | None:
    """A tree of groups that this process can write to, version 2 first; None if there is none."""
    for kind in (TreeV2, TreeV1):
        tree = kind.find(instance, mounts.read_text(), own.read_text())
        if tree is not None and tree.usable():
            return tree
    return None
