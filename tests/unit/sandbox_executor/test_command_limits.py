"""What a command may ask for."""

from __future__ import annotations

from typing import Any

import pytest

from sandpiper.v1 import sandbox_pb2 as pb
from services.sandbox_executor import limits
from services.sandbox_executor.config import Ceilings

CEILINGS = Ceilings(
    wall_s=60, cpu_s=30, memory_bytes=1 << 30, pids=100, disk_bytes=1 << 28, output_bytes=1 << 20
)


def command(**fields: Any) -> pb.SandboxCommand:
    return pb.SandboxCommand(**{"command_id": "c", "sandbox_id": "s", **fields})


def test_zero_takes_the_default() -> None:
    found = limits.check(command(), CEILINGS)
    assert (found.wall_s, found.cpu_s, found.pids, found.memory_bytes) == (10, 5, 64, 256 << 20)
    assert found.file_bytes == found.disk_bytes == 32 << 20
    assert found.output_hard_bytes == 64 * found.output_bytes


def test_what_is_asked_for_is_given() -> None:
    asked = pb.ExecutionLimits(
        wall_s=1.5, cpu_s=1, memory_bytes=64 << 20, pids=9, disk_bytes=1 << 20, output_bytes=10, file_bytes=77
    )
    found = limits.check(command(limits=asked), CEILINGS)
    assert (found.wall_s, found.pids, found.file_bytes, found.output_bytes) == (1.5, 9, 77, 10)
    assert found.output_hard_bytes == 4 << 20


@pytest.mark.parametrize(
    "asked",
    [{"wall_s": 61}, {"cpu_s": 31}, {"memory_bytes": 1 << 31}, {"pids": 101}, {"disk_bytes": 1 << 29},
     {"output_bytes": 1 << 21},
     {"wall_s": -1}, {"memory_bytes": 4096}, {"pids": 1}],
)  # fmt: skip
def test_above_the_ceiling_is_refused_by_name(asked: dict[str, Any]) -> None:
    with pytest.raises(limits.CommandRefused, match=next(iter(asked))):
        limits.check(command(limits=pb.ExecutionLimits(**asked)), CEILINGS)


@pytest.mark.parametrize(
    "fields",
    [{"sandbox_id": ""}, {"sandbox_id": "../x"}, {"sandbox_id": "a b"}, {"env": {"A=B": "x"}},
     {"env": {"": "x"}},
     {"env": {"A": "x\0y"}}, {"argv": ["a\0b"]}],
)  # fmt: skip
def test_malformed_commands_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(limits.CommandRefused):
        limits.check(command(**fields), CEILINGS)
