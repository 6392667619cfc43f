"""EpisodeGraded messages: from a reward and its evidence, or from an infrastructure failure."""

from __future__ import annotations

from sandpiper.v1.common_pb2 import Blob, Failure
from sandpiper.v1.grading_pb2 import EpisodeGraded, GradeEpisode, RewardPart, TestResult
from sandpiper.v1.sandbox_pb2 import OUTCOME_INFRA_ERROR, Outcome
from services.reward_grader.evidence import Evidence, NoVerdict
from services.reward_grader.reward import Reward


def graded(
    request: GradeEpisode, evidence: Evidence, stored: Blob, earned: Reward, outcome: Outcome, seconds: float
) -> EpisodeGraded:
    """A verdict with its reward."""
    return EpisodeGraded(
        ref=request.ref,
        request_id=request.request_id,
        has_reward=True,
        reward=earned.value,
        parts=[
            RewardPart(name=part.name, value=part.value, weight=part.weight, explanation=part.explanation)
            for part in earned.parts
        ],
        tests=[TestResult(**test.model_dump()) for test in evidence.tests],
        passed=earned.passed,
        verdict=evidence.verdict,
        evidence=stored,
        grader_version=evidence.grader_version,
        seconds=seconds,
        outcome=outcome,
    )


def failed(request: GradeEpisode, error: NoVerdict, grader_version: str, seconds: float) -> EpisodeGraded:
    """No verdict: never a reward."""
    return EpisodeGraded(
        ref=request.ref,
        request_id=request.request_id,
        has_reward=False,
        grader_version=grader_version,
        failure=Failure(boundary=error.boundary, reason=error.reason, detail=error.detail),
        seconds=seconds,
        outcome=OUTCOME_INFRA_ERROR,
    )
