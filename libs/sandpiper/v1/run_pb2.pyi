from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunCommand(_message.Message):
    __slots__ = ("run_id", "create", "pause", "resume", "cancel", "finish")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CREATE_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    create: CreateRun
    pause: PauseRun
    resume: ResumeRun
    cancel: CancelRun
    finish: FinishRun
    def __init__(self, run_id: _Optional[str] = ..., create: _Optional[_Union[CreateRun, _Mapping]] = ..., pause: _Optional[_Union[PauseRun, _Mapping]] = ..., resume: _Optional[_Union[ResumeRun, _Mapping]] = ..., cancel: _Optional[_Union[CancelRun, _Mapping]] = ..., finish: _Optional[_Union[FinishRun, _Mapping]] = ...) -> None: ...

class CreateRun(_message.Message):
    __slots__ = ("document_json", "requested_by")
    DOCUMENT_JSON_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    document_json: str
    requested_by: str
    def __init__(self, document_json: _Optional[str] = ..., requested_by: _Optional[str] = ...) -> None: ...

class PauseRun(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResumeRun(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CancelRun(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class FinishRun(_message.Message):
    __slots__ = ("state", "reason")
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    state: str
    reason: str
    def __init__(self, state: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...
