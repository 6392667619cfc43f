"""The codec carries plain data exactly, and survives anything that a hostile peer sends."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandpiper.runners.codec import MAX_DEPTH, CodecError, Extension, builtin_type, decode, encode

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.text(st.characters(codec=None)),
    st.binary(max_size=50),
    st.builds(range, st.integers(-99, 99), st.integers(-99, 99), st.integers(1, 9)),
    st.fractions(),
    st.decimals(allow_nan=False),
)
hashables = st.one_of(
    scalars, st.lists(scalars, max_size=3).map(tuple), st.frozensets(st.integers(), max_size=3)
)
values = st.recursive(
    hashables,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(hashables, inner, max_size=4),
        st.sets(hashables, max_size=4),
    ),
    max_leaves=12,
)


def shape(value: Any) -> Any:
    """The value with its types, so that 1, 1.0 and True differ."""
    if isinstance(value, list | tuple):
        return (type(value).__name__, [shape(item) for item in value])
    if isinstance(value, dict):
        return ("dict", [(shape(key), shape(item)) for key, item in value.items()])
    if isinstance(value, set | frozenset):
        return (type(value).__name__, sorted(repr(shape(item)) for item in value))
    return (type(value).__name__, repr(value))


@settings(deadline=None)
@given(values)
def test_plain_data_arrives_as_it_left(value: Any) -> None:
    assert shape(decode(encode(value))) == shape(value)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_arbitrary_bytes_give_plain_data_or_a_codec_error(data: bytes) -> None:
    try:
        decode(data)
    except CodecError:
        return


@settings(deadline=None)
@given(values, st.integers(0, 400), st.binary(min_size=1, max_size=3))
def test_damaged_frames_never_raise_anything_else(value: Any, place: int, damage: bytes) -> None:
    data = encode(value)
    place %= len(data)
    try:
        decode(data[:place] + damage + data[place + len(damage) :])
    except CodecError:
        return


def test_special_numbers() -> None:
    assert math.isnan(decode(encode(math.nan)))
    assert math.copysign(1, decode(encode(-0.0))) == -1
    assert decode(encode(10**6000)) == 10**6000
    assert decode(encode(-(2**70))) == -(2**70)
    assert decode(encode([True, 1, 1.0])) == [True, 1, 1.0]
    assert decode(encode(Decimal("1.10"))) == Decimal("1.10")
    assert decode(encode(Fraction(1, 3))) == Fraction(1, 3)


def test_subclasses_arrive_as_their_plain_base() -> None:
    class Liar(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    class Text(str):
        pass

    got = decode(encode([Liar(3), Text("a")]))
    assert [type(item) for item in got] == [int, str]
    assert got[0] != 4


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"q",
        b"NN",
        b"l5:N",
        b"l-1:",
        b"l99999999999999:",
        b"s3:ab",
        b"i;",
        b"iffzz;",
        b"i1",
        b"fpi;",
        b"d1:l0:N",
        b"S1:l0:",
        b"rNNN",
        b"ri1;i2;i0;",
        b"b5:abc",
        b"x5:otherN",
        b"x7:decimals2:zz",
        b"x8:fractiont2:i1;i0;",
        b"l1:" * (MAX_DEPTH + 5) + b"N",
    ],
)
def test_malformed_values_are_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        decode(data)


def test_what_is_not_plain_data_is_refused_unless_a_hook_takes_it() -> None:
    with pytest.raises(CodecError, match="object is not plain data"):
        encode([object()])
    data = encode([print], lambda value: Extension("function", value.__name__))
    assert decode(data, lambda tag, value: (tag, value)) == [("function", "print")]


def test_cycles_and_size_are_bounded() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(CodecError, match="nested deeper"):
        encode(cycle)
    with pytest.raises(CodecError, match="larger than 100"):
        encode("x" * 200, limit=100)


def test_builtin_types_are_known_by_name_only_if_they_are_builtin() -> None:
    fake = type("int", (), {})
    assert builtin_type(int) == "int"
    assert builtin_type(fake) is None
    assert builtin_type(len) is None
