"""How evidence becomes an outcome: each cause alone, and which wins."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any

import pytest

from sandpiper.v1 import sandbox_pb2 as pb
from services.sandbox_executor.backend.protocol import RunEvidence
from services.sandbox_executor.outcome import decide
from tests.integration.sandbox_executor.backends import LIMITS

CLEAN = RunEvidence(
    exit_code=0, signal=0, stop="", wall_s=1, cpu_user_s=0.1, cpu_system_s=0.1, memory_peak_bytes=1,
    pids_peak=1,
    stdout=b"", stderr=b"", stdout_bytes=0, stderr_bytes=0, stdout_cut=False, stderr_cut=False, channel=b"",
    disk_bytes=0, disk_full=False, disk_seen_full=False, file_at_limit=False, killed=0, oom_kills=0,
    pids_denied=0,
    source="cgroup-v1",
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, pb.OUTCOME_OK),
        ({"exit_code": 1}, pb.OUTCOME_NONZERO_EXIT),
        ({"signal": signal.SIGSEGV}, pb.OUTCOME_SIGNALED),
        ({"stop": "wall"}, pb.OUTCOME_WALL_TIMEOUT),
        ({"stop": "cpu"}, pb.OUTCOME_CPU_TIMEOUT),
        ({"stop": "output"}, pb.OUTCOME_OUTPUT_LIMIT),
        ({"stop": "files"}, pb.OUTCOME_DISK_LIMIT),
        ({"stop": "memory"}, pb.OUTCOME_OOM),
        ({"stop": "pids"}, pb.OUTCOME_PIDS_LIMIT),
        ({"signal": signal.SIGXCPU}, pb.OUTCOME_CPU_TIMEOUT),
        ({"signal": signal.SIGKILL, "cpu_user_s": 5.1}, pb.OUTCOME_CPU_TIMEOUT),
        ({"signal": signal.SIGKILL}, pb.OUTCOME_SIGNALED),
        ({"signal": signal.SIGXFSZ}, pb.OUTCOME_DISK_LIMIT),
        ({"signal": signal.SIGKILL, "oom_kills": 1}, pb.OUTCOME_OOM),
        ({"exit_code": 1, "oom_kills": 1}, pb.OUTCOME_OOM),
        ({"exit_code": 1, "pids_denied": 1}, pb.OUTCOME_PIDS_LIMIT),
        ({"exit_code": 1, "disk_seen_full": True}, pb.OUTCOME_DISK_LIMIT),
        ({"exit_code": 1, "file_at_limit": True}, pb.OUTCOME_DISK_LIMIT),
        ({"disk_full": True}, pb.OUTCOME_DISK_LIMIT),
    ],
)
def test_each_cause(changes: dict[str, Any], outcome: pb.Outcome) -> None:
    assert decide(replace(CLEAN, **changes), LIMITS) == outcome


@pytest.mark.parametrize(
    "coped", [{"oom_kills": 1}, {"pids_denied": 9}, {"disk_seen_full": True}, {"file_at_limit": True}]
)
def test_a_program_that_met_a_limit_and_ended_well_has_coped(coped: dict[str, Any]) -> None:
    assert decide(replace(CLEAN, **coped), LIMITS) == pb.OUTCOME_OK


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"stop": "wall", "signal": 9, "oom_kills": 1, "pids_denied": 5}, pb.OUTCOME_WALL_TIMEOUT),
        ({"stop": "cpu", "signal": 9, "disk_full": True}, pb.OUTCOME_CPU_TIMEOUT),
        ({"stop": "output", "signal": 9, "cpu_user_s": 9}, pb.OUTCOME_OUTPUT_LIMIT),
        ({"exit_code": 1, "oom_kills": 1, "pids_denied": 1, "disk_full": True}, pb.OUTCOME_OOM),
        ({"signal": 9, "oom_kills": 1, "cpu_user_s": 9}, pb.OUTCOME_OOM),
        ({"signal": signal.SIGXCPU, "pids_denied": 1}, pb.OUTCOME_CPU_TIMEOUT),
        ({"exit_code": 1, "pids_denied": 1, "disk_seen_full": True}, pb.OUTCOME_PIDS_LIMIT),
        ({"signal": signal.SIGSEGV, "disk_seen_full": True}, pb.OUTCOME_DISK_LIMIT),
    ],
)
def test_what_wins(changes: dict[str, Any], outcome: pb.Outcome) -> None:
    assert decide(replace(CLEAN, **changes), LIMITS) == outcome
