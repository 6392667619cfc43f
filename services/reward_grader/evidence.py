"""The evidence record: everything that grading saw, as a value. Rewards are computed from it alone.

`gather` is a pure function of the task and the sandbox result. It either gives evidence, or says that
infrastructure failed under the grading (`NoVerdict`), which is never a verdict on the candidate.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from sandpiper.execution import outcome_name
from sandpiper.tasks.model import Files, RewardSpec, Task
from sandpiper.tasks.plan import Report, ReportError, expected_tests, read_report
from sandpiper.v1 import sandbox_pb2 as pb

Verdict = Literal[
    "passed",
    "failed_tests",
    "syntax_error",
    "error",
    "timeout",
    "oom",
    "pids_limit",
    "disk_limit",
    "output_limit",
    "missing_artifact",
    "runner_killed",
]

LIMIT_VERDICTS: dict[int, Verdict] = {
    pb.OUTCOME_WALL_TIMEOUT: "timeout",
    pb.OUTCOME_CPU_TIMEOUT: "timeout",
    pb.OUTCOME_OOM: "oom",
    pb.OUTCOME_PIDS_LIMIT: "pids_limit",
    pb.OUTCOME_DISK_LIMIT: "disk_limit",
    pb.OUTCOME_OUTPUT_LIMIT: "output_limit",
}
KIND_VERDICTS: tuple[tuple[str, Verdict], ...] = (
    ("syntax", "syntax_error"),
    ("timeout", "timeout"),
    ("exception", "error"),
)
"""The worst kind of failure first."""
SIGNAL_EXIT = 128
"""A shell or sandbox reports a death by signal n as exit status 128 + n."""
DETAIL_CHARS = 2000


class NoVerdict(Exception):
    """Infrastructure failed: `boundary` and `reason` as in the Failure message."""

    def __init__(self, boundary: str, reason: str, detail: str) -> None:
        super().__init__(f"{boundary}/{reason}: {detail}")
        self.boundary, self.reason, self.detail = boundary, reason, detail[:DETAIL_CHARS]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TestOutcome(_Record):
    """One hidden test."""

    __test__ = False

    id: str
    status: str
    kind: str = ""
    message: str = ""
    seconds: float = 0.0


class Execution(_Record):
    """What the kernel and the executor said about the grading run; None where there was none."""

    outcome: str
    exit_code: int
    signal: int
    wall_s: float
    cpu_s: float
    memory_peak_bytes: int
    pids_peak: int
    queued_s: float
    executor_id: str


class Finding(_Record):
    """Something that looks like tampering. Separate from the reward."""

    kind: str
    detail: str


class Evidence(_Record):
    """The stored record. Additive changes only: old records are regraded."""

    schema_version: Literal[1] = 1
    grader_version: str
    request_id: str
    episode_id: str
    attempt: int
    task_id: str
    task_sha256: str
    tests_sha256: str
    base_sha256: str
    artifacts: tuple[str, ...]
    missing: tuple[str, ...] = ()
    execution: Execution | None = None
    tests: tuple[TestOutcome, ...]
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    reward_spec: RewardSpec


@dataclass(frozen=True)
class Subject:
    """What is graded, and by whom."""

    task: Task
    task_sha256: str
    request_id: str
    episode_id: str
    attempt: int
    base_sha256: str
    grader_version: str


def gather(subject: Subject, result: pb.SandboxResult, nonce: str) -> Evidence:
    """Evidence of one grading run.

    Raises:
        NoVerdict: the executor failed, or the trusted runner did.
    """
    if result.outcome in (pb.OUTCOME_INFRA_ERROR, pb.OUTCOME_UNSPECIFIED):
        failure = result.failure
        raise NoVerdict(failure.boundary or "sandbox", failure.reason or "unknown", failure.detail)
    expected = expected_tests(subject.task.hidden)
    findings: tuple[Finding, ...] = ()
    try:
        report = read_report(result.channel, nonce, expected)
    except ReportError as error:
        verdict, findings = _without_report(result, error)
        tests = tuple(TestOutcome(id=test_id, status="missing") for test_id in expected)
        return _evidence(subject, result, tests, verdict, findings=findings)
    tests = tuple(TestOutcome(**vars(test)) for test in report.tests)
    return _evidence(subject, result, tests, _with_report(result, report), missing=report.missing)


def nothing_to_grade(subject: Subject) -> Evidence:
    """Evidence where the policy left none of the artifacts: nothing needs to run."""
    tests = tuple(
        TestOutcome(id=test_id, status="missing") for test_id in expected_tests(subject.task.hidden)
    )
    return _evidence(subject, None, tests, "missing_artifact", missing=subject.task.graded_paths())


def digest_of_files(files: Files) -> str:
    """One digest over paths and contents."""
    digest = hashlib.sha256()
    for path in sorted(files):
        for part in (path.encode(), files[path].encode()):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def _with_report(result: pb.SandboxResult, report: Report) -> Verdict:
    """A pass needs both: every test passed, and the kernel says that the run ended well."""
    if report.missing:
        return "missing_artifact"
    if result.outcome != pb.OUTCOME_OK:
        return LIMIT_VERDICTS.get(result.outcome, "error")
    if report.passed:
        return "passed"
    failing = [test for test in report.tests if test.status != "passed"]
    kinds = {test.kind or "exception" for test in failing}  # a test that did not run has no kind
    for kind, verdict in KIND_VERDICTS:
        if kind in kinds:
            return verdict
    return "failed_tests"


def _without_report(result: pb.SandboxResult, error: ReportError) -> tuple[Verdict, tuple[Finding, ...]]:
    """The runner said nothing usable. A limit or a signal is the candidate's doing; anything else is ours."""
    if result.outcome in LIMIT_VERDICTS:
        return LIMIT_VERDICTS[result.outcome], ()
    if result.outcome == pb.OUTCOME_SIGNALED or result.exit_code > SIGNAL_EXIT:
        number = result.signal or result.exit_code - SIGNAL_EXIT
        finding = Finding(kind="runner_killed", detail=f"the trusted runner ended by signal {number}")
        return "runner_killed", (finding,)
    tail = (result.stderr or result.stdout)[-DETAIL_CHARS:].decode("utf-8", "replace")
    raise NoVerdict("grading", "runner_failed", f"{error}; exit status {result.exit_code}; {tail}")


def _evidence(
    subject: Subject,
    result: pb.SandboxResult | None,
    tests: tuple[TestOutcome, ...],
    verdict: Verdict,
    *,
    missing: tuple[str, ...] = (),
    findings: tuple[Finding, ...] = (),
) -> Evidence:
    return Evidence(
        grader_version=subject.grader_version,
        request_id=subject.request_id,
        episode_id=subject.episode_id,
        attempt=subject.attempt,
        task_id=subject.task.id,
        task_sha256=subject.task_sha256,
        tests_sha256=digest_of_files(subject.task.hidden.files),
        base_sha256=subject.base_sha256,
        artifacts=subject.task.graded_paths(),
        missing=missing,
        execution=_execution(result) if result is not None else None,
        tests=tests,
        verdict=verdict,
        findings=findings,
        reward_spec=subject.task.reward,
    )


def _execution(result: pb.SandboxResult) -> Execution:
    usage = result.usage
    return Execution(
        outcome=outcome_name(result.outcome),
        exit_code=result.exit_code,
        signal=result.signal,
        wall_s=usage.wall_s,
        cpu_s=usage.cpu_user_s + usage.cpu_system_s,
        memory_peak_bytes=usage.memory_peak_bytes,
        pids_peak=usage.pids_peak,
        queued_s=usage.queued_s,
        executor_id=result.executor_id,
    )
