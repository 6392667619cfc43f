"""Messages as rows."""

from __future__ import annotations

import math
from typing import Any

from sandpiper.store.blobs import blob_to_json
from sandpiper.v1 import grading_pb2, sandbox_pb2


def storable(text: str) -> str:
    """`text` without NUL, which Postgres text and JSON cannot hold; each becomes U+FFFD. Tokens keep it."""
    return text.replace("\0", "\ufffd")


class BadVerdict(ValueError):
    """A grading result that is not a number in [-1, 1]."""


def usage_to_json(usage: sandbox_pb2.Usage) -> dict[str, Any]:
    """Every field by its name, in base units."""
    return {field.name: getattr(usage, field.name) for field in usage.DESCRIPTOR.fields}


def graded_fields(result: grading_pb2.EpisodeGraded) -> dict[str, Any]:
    """Columns of `Episode` that a verdict fills; raises BadVerdict for a reward that is not one."""
    if not math.isfinite(result.reward) or not -1 <= result.reward <= 1:
        raise BadVerdict(f"reward {result.reward} of {result.request_id} is outside [-1, 1]")
    return {
        "reward": result.reward,
        "passed": result.passed,
        "verdict": result.verdict,
        "grader_version": result.grader_version,
        "evidence": blob_to_json(result.evidence),
        "reward_parts": [
            {"name": p.name, "value": p.value, "weight": p.weight, "explanation": storable(p.explanation)}
            for p in result.parts
        ],
        "tests": [
            {
                "id": t.id,
                "status": t.status,
                "kind": t.kind,
                "message": storable(t.message[:2000]),
                "seconds": t.seconds,
            }
            for t in result.tests
        ],
    }
