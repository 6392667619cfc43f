"""From a sandbox result to a verdict, or to a typed failure that is no verdict."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from sandpiper.runners import codec
from sandpiper.v1 import sandbox_pb2 as pb
from sandpiper.v1.common_pb2 import Failure
from services.reward_grader.evidence import Evidence, NoVerdict, digest_of_files, gather, nothing_to_grade
from tests.unit.reward_grader.grading_parts import NONCE, make_subject, report, result


@pytest.mark.parametrize(
    ("kinds", "verdict"),
    [
        (("ok", "ok", "ok", "ok"), "passed"),
        (("ok", "assertion", "ok", "ok"), "failed_tests"),
        (("assertion", "exception", "ok", "ok"), "error"),
        (("assertion", "exception", "timeout", "ok"), "timeout"),
        (("syntax",) * 4, "syntax_error"),
        (("ok", "ok", "ok", "missing"), "error"),
    ],
)
def test_verdict_is_the_worst_kind(kinds: tuple[str, ...], verdict: str) -> None:
    evidence = gather(make_subject(), result(report(*kinds)), NONCE)
    assert evidence.verdict == verdict
    assert len(evidence.tests) == 4


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (pb.OUTCOME_WALL_TIMEOUT, "timeout"),
        (pb.OUTCOME_CPU_TIMEOUT, "timeout"),
        (pb.OUTCOME_OOM, "oom"),
        (pb.OUTCOME_PIDS_LIMIT, "pids_limit"),
        (pb.OUTCOME_DISK_LIMIT, "disk_limit"),
        (pb.OUTCOME_OUTPUT_LIMIT, "output_limit"),
    ],
)
def test_limits_are_the_candidates_doing_with_and_without_a_report(outcome: pb.Outcome, verdict: str) -> None:
    without = gather(make_subject(), result(b"", outcome), NONCE)
    assert without.verdict == verdict
    assert {test.status for test in without.tests} == {"missing"}
    with_report = gather(make_subject(), result(report("ok", "ok", "ok", "ok"), outcome), NONCE)
    assert with_report.verdict == verdict


def test_a_killed_runner_is_the_candidates_doing_and_is_noted() -> None:
    for ended in (
        result(b"", pb.OUTCOME_SIGNALED, signal=9),
        result(b"", pb.OUTCOME_NONZERO_EXIT, exit_code=137),
    ):
        evidence = gather(make_subject(), ended, NONCE)
        assert evidence.verdict == "runner_killed"
        assert [finding.kind for finding in evidence.findings] == ["runner_killed"]
        assert "signal 9" in evidence.findings[0].detail


@pytest.mark.parametrize(
    "channel",
    [
        b"",
        b"garbage",
        codec.encode([]),
        codec.encode({"nonce": NONCE}),
        codec.encode({"nonce": NONCE, "tests": [], "missing": []}),
        codec.encode({"nonce": NONCE, "tests": [{"id": 1}], "missing": []}),
        report("ok", "ok", "ok", "ok", nonce="guess"),
        report("ok", "ok", "ok"),
        report("ok", "ok", "ok", "ok")[:-3],
    ],
)
@pytest.mark.parametrize("code", [0, 1, 70])
def test_a_runner_that_says_nothing_usable_is_no_verdict(channel: bytes, code: int) -> None:
    outcome = pb.OUTCOME_OK if code == 0 else pb.OUTCOME_NONZERO_EXIT
    with pytest.raises(NoVerdict) as error:
        gather(make_subject(), result(channel, outcome, exit_code=code, stderr=b"Traceback"), NONCE)
    assert (error.value.boundary, error.value.reason) == ("grading", "runner_failed")
    assert "Traceback" in error.value.detail


def test_infrastructure_failures_keep_their_boundary() -> None:
    failure = Failure(boundary="store", reason="unavailable", detail="x")
    with pytest.raises(NoVerdict) as error:
        gather(make_subject(), result(b"", pb.OUTCOME_INFRA_ERROR, failure=failure), NONCE)
    assert (error.value.boundary, error.value.reason) == ("store", "unavailable")
    with pytest.raises(NoVerdict, match="sandbox/unknown"):
        gather(make_subject(), result(b"", pb.OUTCOME_UNSPECIFIED), NONCE)


def test_missing_artifacts() -> None:
    seen = gather(make_subject(), result(report("ok", "ok", "ok", "ok", missing=("solution.py",))), NONCE)
    assert seen.verdict == "missing_artifact"
    assert seen.missing == ("solution.py",)
    unseen = nothing_to_grade(make_subject())
    assert (unseen.verdict, unseen.execution, unseen.missing) == ("missing_artifact", None, ("solution.py",))


def test_the_record_holds_what_was_seen_and_survives_storage() -> None:
    usage = pb.Usage(wall_s=1.5, cpu_user_s=0.5, cpu_system_s=0.25, memory_peak_bytes=7, pids_peak=3)
    ended = result(report("ok", "ok", "ok", "ok"), usage=usage, executor_id="e1")
    evidence = gather(make_subject(), ended, NONCE)
    assert evidence.execution is not None
    assert evidence.execution.cpu_s == 0.75
    assert evidence.execution.outcome == "ok"
    assert evidence.tests_sha256 == digest_of_files(make_subject().task.hidden.files)
    assert Evidence.model_validate_json(evidence.model_dump_json()) == evidence
    assert NONCE not in evidence.model_dump_json()


def test_digests_tell_files_apart() -> None:
    digests = {
        digest_of_files(files)
        for files in ({"a": "bc"}, {"ab": "c"}, {"a": "b", "c": ""}, {"a": "bc", "d": ""}, {})
    }
    assert len(digests) == 5


def test_results_are_protobuf() -> None:
    assert isinstance(result(b""), Message)
