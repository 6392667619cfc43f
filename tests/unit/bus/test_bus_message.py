"""Messages on the wire: round trip, typed refusals, claim checks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandpiper.bus.claims import HARD_LIMIT_BYTES, LIMIT_BYTES, check_in, check_out
from sandpiper.bus.errors import BusUnavailable, Reject, Retry, Undeliverable, is_transient
from sandpiper.bus.message import (
    CLAIM,
    SCHEMA_VERSION,
    VERSION,
    Headers,
    Outgoing,
    RawHeaders,
    decode_headers,
    encode_headers,
    header_texts,
    parse,
)
from sandpiper.store.errors import CorruptObject, StoreUnavailable
from sandpiper.topics import RUN_COMMANDS
from sandpiper.v1.common_pb2 import Blob
from sandpiper.v1.run_pb2 import RunCommand

texts = st.text(max_size=30)


@given(texts.filter(bool), st.none() | texts, st.none() | st.floats(0, 4e9), st.none() | texts)
def test_headers_survive_the_wire(
    message_id: str, causation_id: str | None, deadline: float | None, trace: str | None
) -> None:
    headers = Headers(message_id, causation_id, deadline, trace)
    assert decode_headers(header_texts(encode_headers(headers)), "fallback") == headers


def test_a_message_of_another_type_is_refused_before_it_is_sent() -> None:
    with pytest.raises(TypeError, match=r"run\.commands carries RunCommand, not Blob"):
        Outgoing(RUN_COMMANDS, Blob(), "k").encode()


def test_ids_are_fresh_unless_given() -> None:
    def ident(message_id: str | None) -> str:
        _, headers = Outgoing(RUN_COMMANDS, RunCommand(), "k", message_id=message_id).encode()
        return dict(headers)["message-id"].decode()

    assert ident("mine") == "mine"
    assert ident(None) != ident(None)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({VERSION: "2"}, "schema_version"),
        ({VERSION: "one"}, "unparseable"),
        ({"deadline": "soon"}, "unparseable"),
    ],
)
def test_headers_that_are_not_understood_are_typed(changed: dict[str, str], reason: str) -> None:
    with pytest.raises(Undeliverable) as caught:
        decode_headers({"message-id": "m", VERSION: str(SCHEMA_VERSION)} | changed, "f")
    assert caught.value.reason == reason


def test_foreign_records_get_the_fallback_id_and_the_current_version() -> None:
    headers = decode_headers(header_texts([("other", None), ("x", b"\xff")]), "t/0/7")
    assert headers == Headers("t/0/7")
    assert not headers.expired(1e12)


def test_bytes_that_are_no_message_are_unparseable() -> None:
    with pytest.raises(Undeliverable) as caught:
        parse(RUN_COMMANDS, b"\xff\xff\xff")
    assert caught.value.reason == "unparseable"


class Store:
    """A claim store that can fail."""

    def __init__(self, error: Exception | None = None) -> None:
        self.data: dict[str, bytes] = {}
        self.error = error

    async def put_by_digest(self, prefix: str, data: bytes, suffix: str = "") -> Blob:
        if self.error:
            raise self.error
        import hashlib  # noqa: PLC0415

        digest = hashlib.sha256(data).hexdigest()
        self.data[f"s3://b/{prefix}/{digest}"] = data
        return Blob(uri=f"s3://b/{prefix}/{digest}", sha256=digest, bytes=len(data))

    async def get(self, blob: Blob) -> bytes:
        if self.error:
            raise self.error
        return self.data[blob.uri]


def claim_of(headers: RawHeaders) -> str:
    return dict(headers)[CLAIM].decode()


async def test_values_above_the_limit_leave_a_claim_check_and_come_back() -> None:
    store, small, large = Store(), b"x" * LIMIT_BYTES, b"y" * (LIMIT_BYTES + 1)
    assert await check_in(store, small, [("a", b"b")]) == (small, [("a", b"b")])
    value, headers = await check_in(store, large, [("a", b"b")])
    assert value == b""
    assert headers[0] == ("a", b"b")
    assert json.loads(claim_of(headers))["bytes"] == len(large)
    assert await check_out(store, claim_of(headers)) == large
    assert await check_in(store, b"z" * len(large), headers) == (
        b"z" * len(large),
        headers,
    )  # checked in already


async def test_without_a_store_the_hard_limit_holds() -> None:
    between = b"x" * HARD_LIMIT_BYTES
    assert await check_in(None, between, []) == (between, [])
    with pytest.raises(ValueError, match="needs an object store"):
        await check_in(None, between + b"x", [])


@pytest.mark.parametrize("error", [KeyError("gone"), CorruptObject("bad"), None])
async def test_a_claim_that_cannot_be_redeemed_is_typed(error: Exception | None) -> None:
    store = Store()
    _, headers = await check_in(store, b"y" * 100_000, [])
    store.error = error
    if error is None:
        store.data = dict.fromkeys(store.data, b"other bytes")
    with pytest.raises(Undeliverable) as caught:
        await check_out(store, claim_of(headers))
    assert caught.value.reason == "claim_check"


@pytest.mark.parametrize("claim", ["", "[]", "{}", '{"uri": "u", "sha256": "s", "bytes": "many"}'])
async def test_a_malformed_claim_is_typed(claim: str) -> None:
    with pytest.raises(Undeliverable, match="malformed"):
        await check_out(Store(), claim)
    with pytest.raises(Undeliverable, match="no object store"):
        await check_out(None, claim)


async def test_an_outage_of_the_store_is_neither_a_dead_letter_nor_a_lost_message() -> None:
    store = Store()
    _, headers = await check_in(store, b"y" * 100_000, [])
    store.error = StoreUnavailable("away")
    with pytest.raises(StoreUnavailable):
        await check_out(store, claim_of(headers))
    with pytest.raises(BusUnavailable):
        await check_in(store, b"y" * 100_000, [])


class OperationalError(Exception):
    """As SQLAlchemy's, by name."""


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (Retry(), True),
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (OperationalError(), True),
        (StoreUnavailable(), True),
        (BusUnavailable(), True),
        (Reject(), False),
        (ValueError(), False),
        (FileNotFoundError(), False),
    ],
)
def test_what_is_worth_trying_again_for_long(error: Exception, transient: bool) -> None:
    assert is_transient(error) is transient
