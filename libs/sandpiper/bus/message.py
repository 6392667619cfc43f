"""Messages as handlers and producers see them, and their form on the wire.

A record is protobuf bytes plus Kafka headers. Header values are UTF-8 text; unknown headers are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import DecodeError, Message

from sandpiper.bus.errors import Undeliverable
from sandpiper.ids import new_id
from sandpiper.telemetry.tracing import current_traceparent
from sandpiper.topics import Topic

SCHEMA_VERSION = 1

MESSAGE_ID = "message-id"
CAUSATION_ID = "causation-id"
DEADLINE = "deadline"
TRACEPARENT = "traceparent"
VERSION = "schema-version"
CLAIM = "claim-check"

RawHeaders = list[tuple[str, bytes]]
M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class Headers:
    """What travels beside every message. `deadline` is unix seconds, absolute."""

    message_id: str
    causation_id: str | None = None
    deadline: float | None = None
    traceparent: str | None = None
    schema_version: int = SCHEMA_VERSION

    def expired(self, now: float) -> bool:
        """True once the deadline lies in the past. Expired messages are delivered all the same."""
        return self.deadline is not None and now > self.deadline


@dataclass(frozen=True)
class Received(Generic[M]):
    """One message as a handler gets it. `timestamp` is the broker's, unix seconds."""

    topic: Topic
    message: M
    headers: Headers
    key: str
    partition: int
    offset: int
    timestamp: float


@dataclass(frozen=True)
class Outgoing:
    """One message to send. Without `traceparent` the current span is its parent."""

    topic: Topic
    message: Message
    key: str
    partition: int | None = None
    message_id: str | None = None
    causation_id: str | None = None
    deadline: float | None = None
    traceparent: str | None = None

    def encode(self) -> tuple[bytes, RawHeaders]:
        """Value and headers for `Producer.send_encoded`, now or later from an outbox.

        Raises TypeError when the message is not the topic's.
        """
        if type(self.message) is not self.topic.message:
            raise TypeError(
                f"{self.topic.name} carries {self.topic.message.__name__}, not {type(self.message).__name__}"
            )
        headers = encode_headers(
            Headers(
                message_id=self.message_id or new_id("msg"),
                causation_id=self.causation_id,
                deadline=self.deadline,
                traceparent=self.traceparent or current_traceparent(),
            )
        )
        return self.message.SerializeToString(deterministic=True), headers


def encode_headers(headers: Headers) -> RawHeaders:
    """Kafka headers, absent values left out."""
    values = {
        MESSAGE_ID: headers.message_id,
        VERSION: str(headers.schema_version),
        CAUSATION_ID: headers.causation_id,
        DEADLINE: None if headers.deadline is None else repr(headers.deadline),
        TRACEPARENT: headers.traceparent,
    }
    return [(name, value.encode()) for name, value in values.items() if value is not None]


def header_texts(raw: Iterable[tuple[str, bytes | None]]) -> dict[str, str]:
    """Headers as text; of several with one name the last counts. Bytes that are not UTF-8 are replaced."""
    return {name: (value or b"").decode(errors="replace") for name, value in raw}


def decode_headers(texts: Mapping[str, str], fallback_id: str) -> Headers:
    """Parse headers. A foreign record without a message id gets `fallback_id`.

    Raises Undeliverable: `schema_version` for a version that this code does not know, `unparseable` for
    a number that is none.
    """
    try:
        version = int(texts.get(VERSION, SCHEMA_VERSION))
        deadline = float(texts[DEADLINE]) if DEADLINE in texts else None
    except ValueError as error:
        raise Undeliverable("unparseable", f"header: {error}") from error
    if version != SCHEMA_VERSION:
        raise Undeliverable(
            "schema_version", f"schema version {version}, this consumer knows {SCHEMA_VERSION}"
        )
    return Headers(
        message_id=texts.get(MESSAGE_ID) or fallback_id,
        causation_id=texts.get(CAUSATION_ID),
        deadline=deadline,
        traceparent=texts.get(TRACEPARENT),
        schema_version=version,
    )


def parse(topic: Topic, value: bytes) -> Message:
    """The topic's message from its bytes; Undeliverable(`unparseable`) when they are not one."""
    try:
        return topic.message.FromString(value)
    except DecodeError as error:
        raise Undeliverable("unparseable", f"{topic.message.__name__}: {error}") from error
