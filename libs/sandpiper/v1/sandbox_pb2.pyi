from sandpiper.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_OK: _ClassVar[Outcome]
    OUTCOME_NONZERO_EXIT: _ClassVar[Outcome]
    OUTCOME_SIGNALED: _ClassVar[Outcome]
    OUTCOME_WALL_TIMEOUT: _ClassVar[Outcome]
    OUTCOME_CPU_TIMEOUT: _ClassVar[Outcome]
    OUTCOME_OOM: _ClassVar[Outcome]
    OUTCOME_PIDS_LIMIT: _ClassVar[Outcome]
    OUTCOME_DISK_LIMIT: _ClassVar[Outcome]
    OUTCOME_OUTPUT_LIMIT: _ClassVar[Outcome]
    OUTCOME_INFRA_ERROR: _ClassVar[Outcome]
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_OK: Outcome
OUTCOME_NONZERO_EXIT: Outcome
OUTCOME_SIGNALED: Outcome
OUTCOME_WALL_TIMEOUT: Outcome
OUTCOME_CPU_TIMEOUT: Outcome
OUTCOME_OOM: Outcome
OUTCOME_PIDS_LIMIT: Outcome
OUTCOME_DISK_LIMIT: Outcome
OUTCOME_OUTPUT_LIMIT: Outcome
OUTCOME_INFRA_ERROR: Outcome

class ExecutionLimits(_message.Message):
    __slots__ = ("wall_s", "cpu_s", "memory_bytes", "pids", "disk_bytes", "output_bytes", "file_bytes")
    WALL_S_FIELD_NUMBER: _ClassVar[int]
    CPU_S_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    PIDS_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    FILE_BYTES_FIELD_NUMBER: _ClassVar[int]
    wall_s: float
    cpu_s: float
    memory_bytes: int
    pids: int
    disk_bytes: int
    output_bytes: int
    file_bytes: int
    def __init__(self, wall_s: _Optional[float] = ..., cpu_s: _Optional[float] = ..., memory_bytes: _Optional[int] = ..., pids: _Optional[int] = ..., disk_bytes: _Optional[int] = ..., output_bytes: _Optional[int] = ..., file_bytes: _Optional[int] = ...) -> None: ...

class FileWrite(_message.Message):
    __slots__ = ("path", "content", "mode")
    PATH_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    path: str
    content: bytes
    mode: int
    def __init__(self, path: _Optional[str] = ..., content: _Optional[bytes] = ..., mode: _Optional[int] = ...) -> None: ...

class SandboxCommand(_message.Message):
    __slots__ = ("command_id", "ref", "reply_topic", "reply_key", "sandbox_id", "base", "files", "argv", "stdin", "env", "limits", "snapshot", "destroy", "private_channel", "private_input", "context", "language", "files_archive", "keep")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    COMMAND_ID_FIELD_NUMBER: _ClassVar[int]
    REF_FIELD_NUMBER: _ClassVar[int]
    REPLY_TOPIC_FIELD_NUMBER: _ClassVar[int]
    REPLY_KEY_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    BASE_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    DESTROY_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_CHANNEL_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_INPUT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    FILES_ARCHIVE_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    command_id: str
    ref: _common_pb2.EpisodeRef
    reply_topic: str
    reply_key: str
    sandbox_id: str
    base: _common_pb2.Blob
    files: _containers.RepeatedCompositeFieldContainer[FileWrite]
    argv: _containers.RepeatedScalarFieldContainer[str]
    stdin: str
    env: _containers.ScalarMap[str, str]
    limits: ExecutionLimits
    snapshot: bool
    destroy: bool
    private_channel: bool
    private_input: bytes
    context: bytes
    language: str
    files_archive: _common_pb2.Blob
    keep: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, command_id: _Optional[str] = ..., ref: _Optional[_Union[_common_pb2.EpisodeRef, _Mapping]] = ..., reply_topic: _Optional[str] = ..., reply_key: _Optional[str] = ..., sandbox_id: _Optional[str] = ..., base: _Optional[_Union[_common_pb2.Blob, _Mapping]] = ..., files: _Optional[_Iterable[_Union[FileWrite, _Mapping]]] = ..., argv: _Optional[_Iterable[str]] = ..., stdin: _Optional[str] = ..., env: _Optional[_Mapping[str, str]] = ..., limits: _Optional[_Union[ExecutionLimits, _Mapping]] = ..., snapshot: _Optional[bool] = ..., destroy: _Optional[bool] = ..., private_channel: _Optional[bool] = ..., private_input: _Optional[bytes] = ..., context: _Optional[bytes] = ..., language: _Optional[str] = ..., files_archive: _Optional[_Union[_common_pb2.Blob, _Mapping]] = ..., keep: _Optional[_Iterable[str]] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("wall_s", "cpu_user_s", "cpu_system_s", "memory_peak_bytes", "pids_peak", "stdout_bytes", "stderr_bytes", "disk_bytes", "queued_s", "setup_s", "source")
    WALL_S_FIELD_NUMBER: _ClassVar[int]
    CPU_USER_S_FIELD_NUMBER: _ClassVar[int]
    CPU_SYSTEM_S_FIELD_NUMBER: _ClassVar[int]
    MEMORY_PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    PIDS_PEAK_FIELD_NUMBER: _ClassVar[int]
    STDOUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    STDERR_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    QUEUED_S_FIELD_NUMBER: _ClassVar[int]
    SETUP_S_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    wall_s: float
    cpu_user_s: float
    cpu_system_s: float
    memory_peak_bytes: int
    pids_peak: int
    stdout_bytes: int
    stderr_bytes: int
    disk_bytes: int
    queued_s: float
    setup_s: float
    source: str
    def __init__(self, wall_s: _Optional[float] = ..., cpu_user_s: _Optional[float] = ..., cpu_system_s: _Optional[float] = ..., memory_peak_bytes: _Optional[int] = ..., pids_peak: _Optional[int] = ..., stdout_bytes: _Optional[int] = ..., stderr_bytes: _Optional[int] = ..., disk_bytes: _Optional[int] = ..., queued_s: _Optional[float] = ..., setup_s: _Optional[float] = ..., source: _Optional[str] = ...) -> None: ...

class SandboxResult(_message.Message):
    __slots__ = ("command_id", "ref", "outcome", "exit_code", "signal", "stdout", "stderr", "stdout_cut", "stderr_cut", "usage", "snapshot", "channel", "context", "executor_id", "partition", "failure", "log")
    COMMAND_ID_FIELD_NUMBER: _ClassVar[int]
    REF_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    STDOUT_CUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_CUT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    command_id: str
    ref: _common_pb2.EpisodeRef
    outcome: Outcome
    exit_code: int
    signal: int
    stdout: bytes
    stderr: bytes
    stdout_cut: bool
    stderr_cut: bool
    usage: Usage
    snapshot: _common_pb2.Blob
    channel: bytes
    context: bytes
    executor_id: str
    partition: int
    failure: _common_pb2.Failure
    log: _common_pb2.Blob
    def __init__(self, command_id: _Optional[str] = ..., ref: _Optional[_Union[_common_pb2.EpisodeRef, _Mapping]] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., exit_code: _Optional[int] = ..., signal: _Optional[int] = ..., stdout: _Optional[bytes] = ..., stderr: _Optional[bytes] = ..., stdout_cut: _Optional[bool] = ..., stderr_cut: _Optional[bool] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., snapshot: _Optional[_Union[_common_pb2.Blob, _Mapping]] = ..., channel: _Optional[bytes] = ..., context: _Optional[bytes] = ..., executor_id: _Optional[str] = ..., partition: _Optional[int] = ..., failure: _Optional[_Union[_common_pb2.Failure, _Mapping]] = ..., log: _Optional[_Union[_common_pb2.Blob, _Mapping]] = ...) -> None: ...

class ExecutorHeartbeat(_message.Message):
    __slots__ = ("executor_id", "partitions", "capacity", "running", "queued", "sandboxes", "cpu_share", "memory_used_bytes", "memory_total_bytes", "disk_free_bytes", "io_pressure", "labels", "images", "isolation", "sent_at", "draining", "backend")
    EXECUTOR_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    SANDBOXES_FIELD_NUMBER: _ClassVar[int]
    CPU_SHARE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_USED_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    IO_PRESSURE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    SENT_AT_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    executor_id: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    capacity: int
    running: int
    queued: int
    sandboxes: int
    cpu_share: float
    memory_used_bytes: int
    memory_total_bytes: int
    disk_free_bytes: int
    io_pressure: float
    labels: _containers.RepeatedScalarFieldContainer[str]
    images: _containers.RepeatedScalarFieldContainer[str]
    isolation: str
    sent_at: float
    draining: bool
    backend: str
    def __init__(self, executor_id: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ..., capacity: _Optional[int] = ..., running: _Optional[int] = ..., queued: _Optional[int] = ..., sandboxes: _Optional[int] = ..., cpu_share: _Optional[float] = ..., memory_used_bytes: _Optional[int] = ..., memory_total_bytes: _Optional[int] = ..., disk_free_bytes: _Optional[int] = ..., io_pressure: _Optional[float] = ..., labels: _Optional[_Iterable[str]] = ..., images: _Optional[_Iterable[str]] = ..., isolation: _Optional[str] = ..., sent_at: _Optional[float] = ..., draining: _Optional[bool] = ..., backend: _Optional[str] = ...) -> None: ...
