from sandpiper.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EpisodeEvent(_message.Message):
    __slots__ = ("ref", "state", "previous", "reason", "at", "reward", "has_reward", "passed", "task_id", "trace_id")
    REF_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    HAS_REWARD_FIELD_NUMBER: _ClassVar[int]
    PASSED_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    ref: _common_pb2.EpisodeRef
    state: str
    previous: str
    reason: str
    at: float
    reward: float
    has_reward: bool
    passed: bool
    task_id: str
    trace_id: str
    def __init__(self, ref: _Optional[_Union[_common_pb2.EpisodeRef, _Mapping]] = ..., state: _Optional[str] = ..., previous: _Optional[str] = ..., reason: _Optional[str] = ..., at: _Optional[float] = ..., reward: _Optional[float] = ..., has_reward: _Optional[bool] = ..., passed: _Optional[bool] = ..., task_id: _Optional[str] = ..., trace_id: _Optional[str] = ...) -> None: ...

class DeadLetter(_message.Message):
    __slots__ = ("topic", "partition", "offset", "key", "value", "headers", "reason", "detail", "consumer", "at", "tries")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    TRIES_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: _containers.ScalarMap[str, str]
    reason: str
    detail: str
    consumer: str
    at: float
    tries: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., headers: _Optional[_Mapping[str, str]] = ..., reason: _Optional[str] = ..., detail: _Optional[str] = ..., consumer: _Optional[str] = ..., at: _Optional[float] = ..., tries: _Optional[int] = ...) -> None: ...
