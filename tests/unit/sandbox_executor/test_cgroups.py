"""Finding and reading control groups, on folders that look like the kernel's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.sandbox_executor.backend.cgroup.v1 import TreeV1
from services.sandbox_executor.backend.cgroup.v2 import GroupV2, TreeV2

GIB = 1 << 30


def _v2(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    defaults = {
        "memory.max": "max", "pids.max": "max", "cgroup.procs": "", "memory.current": "0",
        "pids.current": "0",
        "cpu.stat": "usage_usec 0\nuser_usec 0\nsystem_usec 0\n", "memory.events": "low 0\noom_kill 0\n",
        "pids.events": "max 0\n", "memory.peak": "0\n", "pids.peak": "0\n", "memory.stat": "anon 0\nfile 9\n",
        "cgroup.controllers": "cpu memory pids", "cgroup.subtree_control": "",
    }  # fmt: skip
    for name, text in {**defaults, **{key.replace("__", "."): value for key, value in files.items()}}.items():
        (folder / name).write_text(text)


def test_v2_counts_from_the_beginning_of_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "box"
    _v2(
        folder, cpu__stat="user_usec 1000000\nsystem_usec 500000\n", memory__events="oom_kill 2\n",
        pids__events="max 7\n", memory__peak="5000", pids__peak="9",
    )  # fmt: skip
    group = GroupV2(folder)
    group.begin(GIB, 33)
    assert (folder / "memory.max").read_text() == str(GIB)
    assert (folder / "pids.max").read_text() == "33"
    still = group.counters()
    assert (still.cpu_user_s, still.cpu_system_s, still.oom_kills, still.pids_denied) == (0, 0, 0, 0)
    assert (still.memory_peak, still.pids_peak) == (0, 0)
    _v2(
        folder, cpu__stat="user_usec 3000000\nsystem_usec 600000\n", memory__events="oom_kill 3\n",
        pids__events="max 17\n", memory__peak="8000", pids__peak="9", pids__current="4",
        memory__stat="anon 4096\n",
    )  # fmt: skip
    after = group.counters()
    assert (after.cpu_user_s, after.oom_kills, after.pids_denied, after.memory_anon) == (2, 1, 10, 4096)
    assert after.cpu_system_s == pytest.approx(0.1)
    assert (after.memory_peak, after.pids_peak) == (8000, 4)


def test_v2_is_found_where_memory_and_pids_are_controlled(tmp_path: Path) -> None:
    _v2(tmp_path / "own" / "part")
    mounts = f"none {tmp_path} cgroup2 rw 0 0\nproc /proc proc rw 0 0\n"
    assert TreeV2.find("sandpiper-1", mounts, "0::/own/part\n") is not None
    (tmp_path / "own" / "part" / "cgroup.controllers").write_text("cpu hugetlb")
    assert TreeV2.find("sandpiper-1", mounts, "0::/own/part\n") is None
    assert TreeV2.find("sandpiper-1", mounts, "4:memory:/x\n") is None
    assert TreeV2.find("sandpiper-1", "", "0::/own/part\n") is None


def test_v2_does_not_move_processes_of_others(tmp_path: Path) -> None:
    _v2(tmp_path, cgroup__procs=f"{os.getppid()}\n")
    tree = TreeV2("sandpiper-1", tmp_path, tmp_path)
    with pytest.raises(PermissionError):
        tree._step_aside()
    (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n")
    tree._step_aside()
    assert (tmp_path / "executor" / "cgroup.procs").read_text() == str(os.getpid())


def test_v1_is_found_below_our_own_path(tmp_path: Path) -> None:
    lines, own = [], []
    for number, name in enumerate(("memory", "pids", "cpuacct")):
        (tmp_path / name / "me").mkdir(parents=True)
        lines.append(f"cgroup {tmp_path / name} cgroup rw,{name} 0 0")
        own.append(f"{number}:{name}:/me")
    tree = TreeV1.find("sandpiper-1", "\n".join(lines), "\n".join(own))
    assert tree is not None
    (tmp_path / "pids" / "elsewhere").mkdir()
    (tmp_path / "pids" / "elsewhere" / "sandpiper-1-old").mkdir()
    (tmp_path / "pids" / "me" / "other").mkdir()
    assert tree.instances() == ["sandpiper-1-old"]
    assert tree.clear("sandpiper-1-old") == 1
    assert tree.instances() == []
    assert TreeV1.find("sandpiper-1", "\n".join(lines[:2]), "\n".join(own)) is None


def test_a_tree_that_cannot_be_written_is_not_usable(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    missing.write_text("a file where a folder should be")
    assert not TreeV1("sandpiper-1", dict.fromkeys(("memory", "pids", "cpuacct"), missing), []).usable()
    assert not TreeV2("sandpiper-1", missing, missing).usable()
