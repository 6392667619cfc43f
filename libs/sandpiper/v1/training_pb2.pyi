from sandpiper.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Trajectory(_message.Message):
    __slots__ = ("ref", "tokens", "turns", "reward", "passed", "version_min", "version_max", "trace_parent")
    REF_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    PASSED_FIELD_NUMBER: _ClassVar[int]
    VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    VERSION_MAX_FIELD_NUMBER: _ClassVar[int]
    TRACE_PARENT_FIELD_NUMBER: _ClassVar[int]
    ref: _common_pb2.EpisodeRef
    tokens: _common_pb2.Blob
    turns: _containers.RepeatedCompositeFieldContainer[_common_pb2.Blob]
    reward: float
    passed: bool
    version_min: int
    version_max: int
    trace_parent: str
    def __init__(self, ref: _Optional[_Union[_common_pb2.EpisodeRef, _Mapping]] = ..., tokens: _Optional[_Union[_common_pb2.Blob, _Mapping]] = ..., turns: _Optional[_Iterable[_Union[_common_pb2.Blob, _Mapping]]] = ..., reward: _Optional[float] = ..., passed: _Optional[bool] = ..., version_min: _Optional[int] = ..., version_max: _Optional[int] = ..., trace_parent: _Optional[str] = ...) -> None: ...

class TrajectoryGroup(_message.Message):
    __slots__ = ("run_id", "group_id", "task_id", "group_index", "trajectories")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_INDEX_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORIES_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    group_id: str
    task_id: str
    group_index: int
    trajectories: _containers.RepeatedCompositeFieldContainer[Trajectory]
    def __init__(self, run_id: _Optional[str] = ..., group_id: _Optional[str] = ..., task_id: _Optional[str] = ..., group_index: _Optional[int] = ..., trajectories: _Optional[_Iterable[_Union[Trajectory, _Mapping]]] = ...) -> None: ...

class TrainingStep(_message.Message):
    __slots__ = ("run_id", "step", "policy_version", "episode_ids", "group_ids", "discarded_group_ids", "metrics", "started_at", "seconds", "checkpoint", "failure")
    class MetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    EPISODE_IDS_FIELD_NUMBER: _ClassVar[int]
    GROUP_IDS_FIELD_NUMBER: _ClassVar[int]
    DISCARDED_GROUP_IDS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    step: int
    policy_version: int
    episode_ids: _containers.RepeatedScalarFieldContainer[str]
    group_ids: _containers.RepeatedScalarFieldContainer[str]
    discarded_group_ids: _containers.RepeatedScalarFieldContainer[str]
    metrics: _containers.ScalarMap[str, float]
    started_at: float
    seconds: float
    checkpoint: _common_pb2.Blob
    failure: _common_pb2.Failure
    def __init__(self, run_id: _Optional[str] = ..., step: _Optional[int] = ..., policy_version: _Optional[int] = ..., episode_ids: _Optional[_Iterable[str]] = ..., group_ids: _Optional[_Iterable[str]] = ..., discarded_group_ids: _Optional[_Iterable[str]] = ..., metrics: _Optional[_Mapping[str, float]] = ..., started_at: _Optional[float] = ..., seconds: _Optional[float] = ..., checkpoint: _Optional[_Union[_common_pb2.Blob, _Mapping]] = ..., failure: _Optional[_Union[_common_pb2.Failure, _Mapping]] = ...) -> None: ...

class PolicyPublished(_message.Message):
    __slots__ = ("run_id", "version", "manifest", "weights_sha256", "step")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_SHA256_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    version: int
    manifest: _common_pb2.Blob
    weights_sha256: str
    step: int
    def __init__(self, run_id: _Optional[str] = ..., version: _Optional[int] = ..., manifest: _Optional[_Union[_common_pb2.Blob, _Mapping]] = ..., weights_sha256: _Optional[str] = ..., step: _Optional[int] = ...) -> None: ...
