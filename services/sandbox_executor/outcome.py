"""From evidence to outcome: how an execution ended.

Order: what ended the run comes first (a limit that we enforced), then what the kernel did (memory killer, CPU
and file size signals), then limits that the program ran into and failed of, then its own ending. A program
that met a limit and still ended with 0 has coped: that is `ok`, except on a full disk, where the workspace
cannot be trusted.
"""

from __future__ import annotations

import signal

from sandpiper.v1 import sandbox_pb2 as pb
from services.sandbox_executor.backend.protocol import Limits, RunEvidence

_BY_STOP = {
    "wall": pb.OUTCOME_WALL_TIMEOUT,
    "cpu": pb.OUTCOME_CPU_TIMEOUT,
    "output": pb.OUTCOME_OUTPUT_LIMIT,
    "files": pb.OUTCOME_DISK_LIMIT,
    "memory": pb.OUTCOME_OOM,
    "pids": pb.OUTCOME_PIDS_LIMIT,
}


def decide(evidence: RunEvidence, limits: Limits) -> pb.Outcome:
    """The outcome of a run that took place; infrastructure failures never come here."""
    if evidence.stop:
        return _BY_STOP[evidence.stop]
    failed = evidence.exit_code != 0 or evidence.signal != 0
    too_large = evidence.signal == signal.SIGXFSZ or (failed and evidence.file_at_limit)
    rules = (
        (failed and evidence.oom_kills > 0, pb.OUTCOME_OOM),
        (_cpu_spent(evidence, limits), pb.OUTCOME_CPU_TIMEOUT),
        (too_large, pb.OUTCOME_DISK_LIMIT),
        (failed and evidence.pids_denied > 0, pb.OUTCOME_PIDS_LIMIT),
        (evidence.disk_full or (failed and evidence.disk_seen_full), pb.OUTCOME_DISK_LIMIT),
        (evidence.signal != 0, pb.OUTCOME_SIGNALED),
        (failed, pb.OUTCOME_NONZERO_EXIT),
    )
    return next((outcome for applies, outcome in rules if applies), pb.OUTCOME_OK)


def _cpu_spent(evidence: RunEvidence, limits: Limits) -> bool:
    if evidence.signal == signal.SIGXCPU:
        return True
    used = evidence.cpu_user_s + evidence.cpu_system_s
    return evidence.signal == signal.SIGKILL and used >= limits.cpu_s
