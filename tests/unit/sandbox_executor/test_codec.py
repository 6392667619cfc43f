"""The supervisor's codec."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.sandbox_executor.supervisor import codec

VALUES = st.recursive(
    st.integers(-(2**62), 2**62) | st.binary(max_size=64),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_what_goes_in_comes_out(value: codec.Value) -> None:
    try:
        decoded = codec.decode(codec.encode(value))
    except codec.CodecError as error:
        assert "too deep" in str(error)  # noqa: PT017
    else:
        assert decoded == value


@given(st.binary(max_size=64))
def test_garbage_is_refused_and_never_crashes(data: bytes) -> None:
    try:
        value = codec.decode(data)
    except ValueError:
        return
    assert codec.decode(codec.encode(value)) == value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"i",
        b"ie",
        b"i-e",
        b"i1",
        b"5:abc",
        b"-1:a",
        b"l",
        b"li1e",
        b"d1:ae",
        b"di1ei1ee",
        b"i1ei2e",
        b"9999999999:",
    ],
)
def test_malformed(data: bytes) -> None:
    with pytest.raises(codec.CodecError):
        codec.decode(data)


def test_nesting_is_bounded() -> None:
    with pytest.raises(codec.CodecError, match="too deep"):
        codec.decode(b"l" * 1000 + b"e" * 1000)


def test_text_and_booleans_have_one_form() -> None:
    assert codec.encode({"b": "é", "a": True, "c": (1,)}) == b"d1:ai1e1:b2:\xc3\xa91:cli1eee"


def test_a_map_is_asked_for() -> None:
    with pytest.raises(codec.CodecError, match="not a dictionary"):
        codec.decode_map(b"i1e")


def test_other_types_are_not_encoded() -> None:
    with pytest.raises(codec.CodecError):
        codec.encode(1.5)  # type: ignore[arg-type]
