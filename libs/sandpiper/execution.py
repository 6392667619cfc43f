"""What services say to and about sandboxes alike: a task's limits in base units, an outcome's word."""

from __future__ import annotations

from sandpiper.tasks.model import TaskLimits
from sandpiper.v1.sandbox_pb2 import ExecutionLimits, Outcome

MEBI = 1 << 20
KIBI = 1 << 10


def execution_limits(limits: TaskLimits) -> ExecutionLimits:
    """Limits of one execution, in seconds and bytes. A file may be as large as the disk."""
    return ExecutionLimits(
        wall_s=limits.wall_s,
        cpu_s=limits.cpu_s,
        memory_bytes=limits.memory_mb * MEBI,
        pids=limits.pids,
        disk_bytes=limits.disk_mb * MEBI,
        output_bytes=limits.output_kb * KIBI,
        file_bytes=limits.disk_mb * MEBI,
    )


def outcome_name(outcome: Outcome) -> str:
    """The design's word for an outcome, for example `wall_timeout`."""
    return Outcome.Name(outcome).removeprefix("OUTCOME_").lower()
