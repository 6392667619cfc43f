"""Plain data <-> bytes, for pipes whose other end is not trusted.

Values: None, bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range, nested; Decimal
and Fraction. Decoding builds only these, so nothing that a candidate sends can run code, lie about equality
or name a class; size, depth and counts are bounded by the bytes given. Text heads, to be read by eye:

    N T F · i<hex>; · f<repr>; · c<repr>;<repr>; · s<n>:<utf-8> · b<n>:<bytes> · l<n>: t<n>: S<n>: Z<n>: items
    d<n>: key value … · r start stop step · x<n>:<tag> value   (extension, given to the caller's hook)

Standalone: nothing to import, because `json` and `struct` cost 5-20 ms of start-up each.
"""

from __future__ import annotations

import builtins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 150
HEAD_DIGITS = 12
DECIMAL, FRACTION = "decimal", "fraction"


class CodecError(Exception):
    """The value is not plain data, or the bytes are not an encoded value."""


class Extension:
    """What an encoding hook returns to send a value under `tag`."""

    def __init__(self, tag: str, value: Any) -> None:
        self.tag, self.value = tag, value


def builtin_type(value: Any) -> str | None:
    """The name of a builtin class such as `int`; None for anything else."""
    name = getattr(value, "__name__", "")
    return name if isinstance(value, type) and getattr(builtins, name, None) is value else None


def _refuse(value: Any) -> Any:
    raise CodecError(f"{type(value).__name__} is not plain data")


def _refuse_tag(tag: str, value: Any) -> Any:
    raise CodecError(f"unexpected extension {tag!r}")


def encode(value: Any, hook: Callable[[Any], Extension] = _refuse, limit: int = MAX_BYTES) -> bytes:
    """Bytes of `value`. `hook` is asked about every value that is not plain data.

    Raises:
        CodecError: not plain data, deeper than 150 levels, or longer than `limit` bytes.
    """
    out: list[bytes] = []
    _encode(value, out, hook, MAX_DEPTH)
    data = b"".join(out)
    if len(data) > limit:
        raise CodecError(f"value of {len(data)} bytes is larger than {limit}")
    return data


def decode(data: bytes, hook: Callable[[str, Any], Any] = _refuse_tag) -> Any:
    """The value in `data`. `hook` receives tag and value of every extension.

    Raises:
        CodecError: anything but exactly one well-formed value.
    """
    reader = _Reader(data, hook)
    try:
        value = reader.value(MAX_DEPTH)
    except (ValueError, TypeError, OverflowError) as error:
        raise CodecError(f"malformed value at byte {reader.position}: {error}") from None
    if reader.position != len(data):
        raise CodecError(f"{len(data) - reader.position} bytes after the value")
    return value


def _encode(value: Any, out: list[bytes], hook: Callable[[Any], Extension], depth: int) -> None:
    if depth <= 0:
        raise CodecError(f"nested deeper than {MAX_DEPTH} levels")
    if value is None or value is True or value is False:
        out.append(b"N" if value is None else b"T" if value else b"F")
    elif isinstance(value, int):
        out.append(b"i%x;" % value)
    elif isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
        out.append(b"s%d:%s" % (len(text), text))
    elif isinstance(value, float):
        out.append(b"f%s;" % float.__repr__(value).encode())
    elif isinstance(value, (list, tuple)):
        out.append(b"%s%d:" % (b"l" if isinstance(value, list) else b"t", len(value)))
        for item in value:
            _encode(item, out, hook, depth - 1)
    elif isinstance(value, dict):
        out.append(b"d%d:" % len(value))
        for key, item in value.items():
            _encode(key, out, hook, depth - 1)
            _encode(item, out, hook, depth - 1)
    else:
        _encode_rare(value, out, hook, depth)


def _encode_rare(value: Any, out: list[bytes], hook: Callable[[Any], Extension], depth: int) -> None:
    if isinstance(value, (bytes, bytearray)):
        out.append(b"b%d:%s" % (len(value), bytes(value)))
    elif isinstance(value, (set, frozenset)):
        out.append(b"%s%d:" % (b"S" if isinstance(value, set) else b"Z", len(value)))
        for item in value:
            _encode(item, out, hook, depth - 1)
    elif isinstance(value, complex):
        out.append(b"c%s;%s;" % (repr(value.real).encode(), repr(value.imag).encode()))
    elif isinstance(value, range):
        out.append(b"r")
        for item in (value.start, value.stop, value.step):
            _encode(item, out, hook, depth - 1)
    else:
        extension = _number_extension(value) or hook(value)
        tag = extension.tag.encode()
        out.append(b"x%d:%s" % (len(tag), tag))
        _encode(extension.value, out, hook, depth - 1)


def _number_extension(value: Any) -> Extension | None:
    """Decimal and Fraction, recognised by name: importing their modules is slow."""
    kind = type(value)
    if kind.__module__ == "decimal" and kind.__name__ == "Decimal":
        return Extension(DECIMAL, str(value))
    if kind.__module__ == "fractions" and kind.__name__ == "Fraction":
        return Extension(FRACTION, (value.numerator, value.denominator))
    return None


def _number(tag: str, value: Any) -> Any:
    if tag == DECIMAL and type(value) is str:
        from decimal import Decimal, InvalidOperation  # noqa: PLC0415 - slow and rare

        try:
            return Decimal(value)
        except InvalidOperation:
            raise CodecError("malformed Decimal") from None
    if tag == FRACTION and type(value) is tuple and [type(part) for part in value] == [int, int]:
        from fractions import Fraction  # noqa: PLC0415 - slow and rare

        if value[1]:
            return Fraction(*value)
    raise CodecError(f"malformed {tag}")


class _Reader:
    """A cursor over untrusted bytes."""

    def __init__(self, data: bytes, hook: Callable[[str, Any], Any]) -> None:
        self.data, self.hook, self.position = data, hook, 0

    def value(self, depth: int) -> Any:
        """The next value."""
        if depth <= 0:
            raise CodecError(f"nested deeper than {MAX_DEPTH} levels")
        tag = self.data[self.position : self.position + 1]
        self.position += 1
        read = _READ.get(tag)
        if read is None:
            raise CodecError(f"unknown tag {tag!r} at byte {self.position - 1}")
        return read(self, depth)

    def text(self, end: bytes, limit: int) -> str:
        """ASCII up to `end`, which must come within `limit` bytes."""
        stop = self.data.find(end, self.position, self.position + limit + 1)
        if stop < 0:
            raise CodecError(f"no {end!r} after byte {self.position}")
        piece = self.data[self.position : stop].decode("ascii")
        self.position = stop + 1
        return piece

    def count(self) -> int:
        """A length: decimal digits, never more than the bytes that are left."""
        digits = self.text(b":", HEAD_DIGITS)
        if not digits.isdigit() or int(digits) > len(self.data) - self.position:
            raise CodecError(f"impossible length {digits!r}")
        return int(digits)

    def bytes(self) -> bytes:
        """A length and so many bytes."""
        size = self.count()
        self.position += size
        return self.data[self.position - size : self.position]

    def items(self, depth: int) -> list[Any]:
        """A length and so many values."""
        return [self.value(depth - 1) for _ in range(self.count())]

    def integer(self) -> int:
        """Hexadecimal with sign: unlike decimal, linear in its length."""
        digits = self.text(b";", len(self.data))
        if not digits.strip("-") or digits.strip("-0123456789abcdef"):
            raise CodecError("malformed integer")
        return int(digits, 16)

    def number(self) -> float:
        """The repr of a float."""
        return float(self.text(b";", 32))

    def pairs(self, depth: int) -> dict[Any, Any]:
        """A length and so many keys with their values."""
        return {self.value(depth - 1): self.value(depth - 1) for _ in range(self.count())}

    def extension(self, depth: int) -> Any:
        """A tag and a value, given to the hook."""
        tag = self.bytes().decode("ascii")
        value = self.value(depth - 1)
        return _number(tag, value) if tag in (DECIMAL, FRACTION) else self.hook(tag, value)

    def range(self, depth: int) -> range:
        """Three integers."""
        parts = [self.value(depth - 1) for _ in range(3)]
        if not all(type(part) is int for part in parts):
            raise CodecError("a range needs three integers")
        return range(*parts)


_READ: dict[bytes, Callable[[_Reader, int], Any]] = {
    b"N": lambda reader, depth: None,
    b"T": lambda reader, depth: True,
    b"F": lambda reader, depth: False,
    b"i": lambda reader, depth: reader.integer(),
    b"f": lambda reader, depth: reader.number(),
    b"c": lambda reader, depth: complex(reader.number(), reader.number()),
    b"s": lambda reader, depth: reader.bytes().decode("utf-8", "surrogatepass"),
    b"b": lambda reader, depth: reader.bytes(),
    b"l": lambda reader, depth: reader.items(depth),
    b"t": lambda reader, depth: tuple(reader.items(depth)),
    b"S": lambda reader, depth: set(reader.items(depth)),
    b"Z": lambda reader, depth: frozenset(reader.items(depth)),
    b"d": lambda reader, depth: reader.pairs(depth),
    b"r": lambda reader, depth: reader.range(depth),
    b"x": lambda reader, depth: reader.extension(depth),
}
