"""Everything that can stop a turn from being generated, each with the boundary that it crossed.

InferenceError
├── BadRequest            the request contradicts itself; another try will not help
├── DeadlineExpired       the deadline of the message passed first
├── EngineDied            the engine lost its process or its state; it is being restarted
├── EngineUnavailable     no engine could be started for these weights
├── PolicyRefused         the weights do not do what their manifest says (probe), or are not what it names
└── PolicyUnavailable     manifest or files of the policy cannot be had
"""

from __future__ import annotations

from sandpiper.v1.common_pb2 import Failure


class InferenceError(Exception):
    """Base: `boundary` and `reason` go into the typed failure, the text is for people."""

    boundary = "inference"
    reason = "internal"

    def to_failure(self) -> Failure:
        """The message form."""
        return Failure(boundary=self.boundary, reason=self.reason, detail=str(self)[:2000])


class BadRequest(InferenceError):
    """The request cannot be served by any engine."""

    reason = "bad_request"


class DeadlineExpired(InferenceError):
    """The turn was not done when its deadline passed."""

    boundary = "deadline"
    reason = "generation"


class EngineDied(InferenceError):
    """The engine is gone; what it was generating is lost with it."""

    reason = "engine_died"


class EngineUnavailable(InferenceError):
    """The engine does not start."""

    reason = "engine_unavailable"


class PolicyRefused(InferenceError):
    """A policy that must not be served. `reason`: probe_mismatch, corrupt or incompatible."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class PolicyUnavailable(InferenceError):
    """The object store does not have it (`missing`) or does not answer (`unavailable`)."""

    boundary = "store"

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
