from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Blob(_message.Message):
    __slots__ = ("uri", "sha256", "bytes")
    URI_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    uri: str
    sha256: str
    bytes: int
    def __init__(self, uri: _Optional[str] = ..., sha256: _Optional[str] = ..., bytes: _Optional[int] = ...) -> None: ...

class EpisodeRef(_message.Message):
    __slots__ = ("run_id", "group_id", "episode_id", "attempt", "turn")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    EPISODE_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    group_id: str
    episode_id: str
    attempt: int
    turn: int
    def __init__(self, run_id: _Optional[str] = ..., group_id: _Optional[str] = ..., episode_id: _Optional[str] = ..., attempt: _Optional[int] = ..., turn: _Optional[int] = ...) -> None: ...

class PolicyRef(_message.Message):
    __slots__ = ("run_id", "version", "pinned", "manifest")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    version: int
    pinned: bool
    manifest: Blob
    def __init__(self, run_id: _Optional[str] = ..., version: _Optional[int] = ..., pinned: _Optional[bool] = ..., manifest: _Optional[_Union[Blob, _Mapping]] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("boundary", "reason", "detail")
    BOUNDARY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    boundary: str
    reason: str
    detail: str
    def __init__(self, boundary: _Optional[str] = ..., reason: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...
