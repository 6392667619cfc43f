"""Building SandboxResult messages."""

from __future__ import annotations

from sandpiper.v1 import sandbox_pb2 as pb
from sandpiper.v1.common_pb2 import Failure
from services.sandbox_executor.backend.protocol import RunEvidence


def of_run(evidence: RunEvidence, outcome: pb.Outcome) -> pb.SandboxResult:
    """What a run gave."""
    return pb.SandboxResult(
        outcome=outcome,
        exit_code=evidence.exit_code,
        signal=evidence.signal,
        stdout=evidence.stdout,
        stderr=evidence.stderr,
        stdout_cut=evidence.stdout_cut,
        stderr_cut=evidence.stderr_cut,
        channel=evidence.channel,
        usage=pb.Usage(
            wall_s=evidence.wall_s,
            cpu_user_s=evidence.cpu_user_s,
            cpu_system_s=evidence.cpu_system_s,
            memory_peak_bytes=evidence.memory_peak_bytes,
            pids_peak=evidence.pids_peak,
            stdout_bytes=evidence.stdout_bytes,
            stderr_bytes=evidence.stderr_bytes,
            disk_bytes=evidence.disk_bytes,
            source=evidence.source,
        ),
    )


def did_not_fit() -> pb.SandboxResult:
    """The files to write are larger than the workspace may be; nothing was run."""
    return pb.SandboxResult(
        outcome=pb.OUTCOME_DISK_LIMIT,
        stderr=b"sandpiper: the files do not fit into the workspace; the command was not run\n",
    )


def failed(boundary: str, reason: str, detail: str) -> pb.SandboxResult:
    """No verdict: infrastructure failed."""
    return pb.SandboxResult(
        outcome=pb.OUTCOME_INFRA_ERROR,
        failure=Failure(boundary=boundary, reason=reason, detail=detail[:2000]),
    )


def log_of(result: pb.SandboxResult) -> bytes:
    """Kept stdout and stderr as one text."""
    if not result.stderr:
        return result.stdout
    return result.stdout + b"\n--- stderr ---\n" + result.stderr
