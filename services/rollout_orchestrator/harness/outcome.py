"""One line that says how an execution ended."""

from __future__ import annotations

from sandpiper.execution import outcome_name
from sandpiper.v1 import sandbox_pb2 as pb


def describe(result: pb.SandboxResult) -> str:
    """For the policy: exit code, signal or the limit that ended the command."""
    texts = {
        pb.OUTCOME_OK: "The command succeeded.",
        pb.OUTCOME_NONZERO_EXIT: f"The command failed with exit code {result.exit_code}.",
        pb.OUTCOME_SIGNALED: f"The command was killed by signal {result.signal}.",
        pb.OUTCOME_WALL_TIMEOUT: "The command ran out of time.",
        pb.OUTCOME_CPU_TIMEOUT: "The command used up its CPU time.",
        pb.OUTCOME_OOM: "The command ran out of memory.",
        pb.OUTCOME_PIDS_LIMIT: "The command started too many processes.",
        pb.OUTCOME_DISK_LIMIT: "The command filled the disk.",
        pb.OUTCOME_OUTPUT_LIMIT: "The command printed too much and was stopped.",
    }
    return texts.get(result.outcome, f"The command ended: {outcome_name(result.outcome)}.")
