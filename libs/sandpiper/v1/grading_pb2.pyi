from sandpiper.v1 import common_pb2 as _common_pb2
from sandpiper.v1 import sandbox_pb2 as _sandbox_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GradeEpisode(_message.Message):
    __slots__ = ("ref", "request_id", "task", "snapshot", "deadline")
    REF_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    ref: _common_pb2.EpisodeRef
    request_id: str
    task: _common_pb2.Blob
    snapshot: _common_pb2.Blob
    deadline: float
    def __init__(self, ref: _Optional[_Union[_common_pb2.EpisodeRef, _Mapping]] = ..., request_id: _Optional[str] = ..., task: _Optional[_Union[_common_pb2.Blob, _Mapping]] = ..., snapshot: _Optional[_Union[_common_pb2.Blob, _Mapping]] = ..., deadline: _Optional[float] = ...) -> None: ...

class TestResult(_message.Message):
    __slots__ = ("id", "status", "kind", "message", "seconds")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    id: str
    status: str
    kind: str
    message: str
    seconds: float
    def __init__(self, id: _Optional[str] = ..., status: _Optional[str] = ..., kind: _Optional[str] = ..., message: _Optional[str] = ..., seconds: _Optional[float] = ...) -> None: ...

class RewardPart(_message.Message):
    __slots__ = ("name", "value", "weight", "explanation")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    weight: float
    explanation: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ..., weight: _Optional[float] = ..., explanation: _Optional[str] = ...) -> None: ...

class EpisodeGraded(_message.Message):
    __slots__ = ("ref", "request_id", "has_reward", "reward", "parts", "tests", "passed", "verdict", "evidence", "grader_version", "failure", "seconds", "outcome")
    REF_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    HAS_REWARD_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    TESTS_FIELD_NUMBER: _ClassVar[int]
    PASSED_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    GRADER_VERSION_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ref: _common_pb2.EpisodeRef
    request_id: str
    has_reward: bool
    reward: float
    parts: _containers.RepeatedCompositeFieldContainer[RewardPart]
    tests: _containers.RepeatedCompositeFieldContainer[TestResult]
    passed: bool
    verdict: str
    evidence: _common_pb2.Blob
    grader_version: str
    failure: _common_pb2.Failure
    seconds: float
    outcome: _sandbox_pb2.Outcome
    def __init__(self, ref: _Optional[_Union[_common_pb2.EpisodeRef, _Mapping]] = ..., request_id: _Optional[str] = ..., has_reward: _Optional[bool] = ..., reward: _Optional[float] = ..., parts: _Optional[_Iterable[_Union[RewardPart, _Mapping]]] = ..., tests: _Optional[_Iterable[_Union[TestResult, _Mapping]]] = ..., passed: _Optional[bool] = ..., verdict: _Optional[str] = ..., evidence: _Optional[_Union[_common_pb2.Blob, _Mapping]] = ..., grader_version: _Optional[str] = ..., failure: _Optional[_Union[_common_pb2.Failure, _Mapping]] = ..., seconds: _Optional[float] = ..., outcome: _Optional[_Union[_sandbox_pb2.Outcome, str]] = ...) -> None: ...
