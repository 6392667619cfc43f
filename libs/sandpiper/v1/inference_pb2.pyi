from sandpiper.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ChatMessage(_message.Message):
    __slots__ = ("role", "content")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    role: str
    content: str
    def __init__(self, role: _Optional[str] = ..., content: _Optional[str] = ...) -> None: ...

class Sampling(_message.Message):
    __slots__ = ("temperature", "top_p", "max_new_tokens", "seed", "context_tokens", "stop")
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    MAX_NEW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    temperature: float
    top_p: float
    max_new_tokens: int
    seed: int
    context_tokens: int
    stop: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, temperature: _Optional[float] = ..., top_p: _Optional[float] = ..., max_new_tokens: _Optional[int] = ..., seed: _Optional[int] = ..., context_tokens: _Optional[int] = ..., stop: _Optional[_Iterable[str]] = ...) -> None: ...

class GenerateTurn(_message.Message):
    __slots__ = ("ref", "request_id", "policy", "prior", "messages", "sampling", "assistant_prefix")
    REF_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PRIOR_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    ASSISTANT_PREFIX_FIELD_NUMBER: _ClassVar[int]
    ref: _common_pb2.EpisodeRef
    request_id: str
    policy: _common_pb2.PolicyRef
    prior: _common_pb2.Blob
    messages: _containers.RepeatedCompositeFieldContainer[ChatMessage]
    sampling: Sampling
    assistant_prefix: str
    def __init__(self, ref: _Optional[_Union[_common_pb2.EpisodeRef, _Mapping]] = ..., request_id: _Optional[str] = ..., policy: _Optional[_Union[_common_pb2.PolicyRef, _Mapping]] = ..., prior: _Optional[_Union[_common_pb2.Blob, _Mapping]] = ..., messages: _Optional[_Iterable[_Union[ChatMessage, _Mapping]]] = ..., sampling: _Optional[_Union[Sampling, _Mapping]] = ..., assistant_prefix: _Optional[str] = ...) -> None: ...

class TurnTokens(_message.Message):
    __slots__ = ("prompt_ids", "output_ids", "logprobs", "versions", "policy_run_id", "turn_starts", "turn_ends")
    PROMPT_IDS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_IDS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    POLICY_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TURN_STARTS_FIELD_NUMBER: _ClassVar[int]
    TURN_ENDS_FIELD_NUMBER: _ClassVar[int]
    prompt_ids: _containers.RepeatedScalarFieldContainer[int]
    output_ids: _containers.RepeatedScalarFieldContainer[int]
    logprobs: _containers.RepeatedScalarFieldContainer[float]
    versions: _containers.RepeatedScalarFieldContainer[int]
    policy_run_id: str
    turn_starts: _containers.RepeatedScalarFieldContainer[int]
    turn_ends: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, prompt_ids: _Optional[_Iterable[int]] = ..., output_ids: _Optional[_Iterable[int]] = ..., logprobs: _Optional[_Iterable[float]] = ..., versions: _Optional[_Iterable[int]] = ..., policy_run_id: _Optional[str] = ..., turn_starts: _Optional[_Iterable[int]] = ..., turn_ends: _Optional[_Iterable[int]] = ...) -> None: ...

class TurnGenerated(_message.Message):
    __slots__ = ("ref", "request_id", "text", "finish_reason", "tokens", "prompt_tokens", "output_tokens", "version_min", "version_max", "queued_s", "generate_s", "engine", "failure", "weights_sha256")
    REF_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    VERSION_MAX_FIELD_NUMBER: _ClassVar[int]
    QUEUED_S_FIELD_NUMBER: _ClassVar[int]
    GENERATE_S_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_SHA256_FIELD_NUMBER: _ClassVar[int]
    ref: _common_pb2.EpisodeRef
    request_id: str
    text: str
    finish_reason: str
    tokens: _common_pb2.Blob
    prompt_tokens: int
    output_tokens: int
    version_min: int
    version_max: int
    queued_s: float
    generate_s: float
    engine: str
    failure: _common_pb2.Failure
    weights_sha256: str
    def __init__(self, ref: _Optional[_Union[_common_pb2.EpisodeRef, _Mapping]] = ..., request_id: _Optional[str] = ..., text: _Optional[str] = ..., finish_reason: _Optional[str] = ..., tokens: _Optional[_Union[_common_pb2.Blob, _Mapping]] = ..., prompt_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., version_min: _Optional[int] = ..., version_max: _Optional[int] = ..., queued_s: _Optional[float] = ..., generate_s: _Optional[float] = ..., engine: _Optional[str] = ..., failure: _Optional[_Union[_common_pb2.Failure, _Mapping]] = ..., weights_sha256: _Optional[str] = ...) -> None: ...
