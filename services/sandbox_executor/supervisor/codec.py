"""Bencode: integers, bytes, lists and dictionaries. Small, strict, safe on input from inside a sandbox."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    Value: TypeAlias = "int | bytes | list[Value] | dict[str, Value]"
    Encodable: TypeAlias = "int | bytes | str | Sequence[Encodable] | Mapping[str, Encodable]"

MAX_DEPTH = 8


class CodecError(ValueError):
    """The bytes are not one well-formed value."""


def encode(value: Encodable) -> bytes:
    """The canonical bytes of `value`; text becomes UTF-8, booleans become 0 or 1."""
    if isinstance(value, int):
        return b"i%de" % value
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    if isinstance(value, bytes):
        return b"%d:%s" % (len(value), value)
    if isinstance(value, (list, tuple)):
        return b"l%se" % b"".join([encode(item) for item in value])
    if isinstance(value, dict):
        return b"d%se" % b"".join([encode(key) + encode(value[key]) for key in sorted(value)])
    raise CodecError(f"cannot encode {type(value).__name__}")


def decode(data: bytes) -> Value:
    """The one value in `data`. Raises CodecError for anything else."""
    value, end = _value(data, 0, 0)
    if end != len(data):
        raise CodecError("trailing bytes")
    return value


def decode_map(data: bytes) -> dict[str, Value]:
    """As `decode`, for a dictionary."""
    value = decode(data)
    if not isinstance(value, dict):
        raise CodecError("not a dictionary")
    return value


def _value(data: bytes, at: int, depth: int) -> tuple[Value, int]:
    if depth > MAX_DEPTH:
        raise CodecError("too deep")
    kind = data[at : at + 1]
    if kind == b"i":
        end = data.find(b"e", at, at + 24)
        return _integer(data[at + 1 : end] if end > 0 else b""), end + 1
    if kind == b"l":
        return _list(data, at + 1, depth)
    if kind == b"d":
        return _map(data, at + 1, depth)
    return _bytes(data, at)


def _integer(digits: bytes) -> int:
    if not digits.lstrip(b"-").isdigit():
        raise CodecError("bad integer")
    return int(digits)


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    colon = data.find(b":", at, at + 12)
    if colon < 0 or not data[at:colon].isdigit():
        raise CodecError("bad length")
    end = colon + 1 + int(data[at:colon])
    if end > len(data):
        raise CodecError("cut short")
    return data[colon + 1 : end], end


def _list(data: bytes, at: int, depth: int) -> tuple[Value, int]:
    items: list[Value] = []
    while data[at : at + 1] != b"e":
        item, at = _value(data, at, depth + 1)
        items.append(item)
    return items, at + 1


def _map(data: bytes, at: int, depth: int) -> tuple[Value, int]:
    items: dict[str, Value] = {}
    while data[at : at + 1] != b"e":
        key, at = _bytes(data, at)
        items[key.decode("utf-8", "surrogateescape")], at = _value(data, at, depth + 1)
    return items, at + 1
