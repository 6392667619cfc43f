from sandpiper.v1 import common_pb2 as _common_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TaskSetSubmitted(_message.Message):
    __slots__ = ("task_set_id", "name", "version", "tasks", "task_count", "submitted_by")
    TASK_SET_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    TASK_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_BY_FIELD_NUMBER: _ClassVar[int]
    task_set_id: str
    name: str
    version: str
    tasks: _common_pb2.Blob
    task_count: int
    submitted_by: str
    def __init__(self, task_set_id: _Optional[str] = ..., name: _Optional[str] = ..., version: _Optional[str] = ..., tasks: _Optional[_Union[_common_pb2.Blob, _Mapping]] = ..., task_count: _Optional[int] = ..., submitted_by: _Optional[str] = ...) -> None: ...
