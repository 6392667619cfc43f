"""Handles to values of the candidate that are not plain data: functions, iterators, classes, objects.

What a handle allows follows from what could be faked with it. Functions and iterators only ever yield data.
Objects are inert, unless the task's own reference solution has classes: then their methods, attributes and
operators work, but equality with plain data is still decided here, never by the candidate. Nothing that the
candidate sends can switch that on.
"""

from __future__ import annotations

from sandpiper.runners.codec import CodecError
from sandpiper.runners.crossing import CandidateError
from sandpiper.runners.remote import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def make(session: Session, value: Any) -> Any:
    """The handle described by `[kind, [place, path], class names]`."""
    try:
        kind, place, names = value
        source, path = place
        names = [str(name) for name in names]
    except (TypeError, ValueError):
        raise CodecError("malformed handle") from None
    if not isinstance(source, (str, int)) or not isinstance(path, str):
        raise CodecError("malformed handle")
    if kind == "class" and "Exception" in names:
        return session.errors.define(str(source), path, names)
    made = {"function": Function, "iterator": Items, "class": Class}.get(kind)
    if made is None:
        made = Object if session.objects_allowed else Handle
    return made(session, place, names)


class Handle:
    """An inert object: it is nothing but itself."""

    __slots__ = ("_names", "_place", "_session")
    _names: list[str]
    _place: list[Any]
    _session: Session

    def __init__(self, session: Session, place: list[Any], names: list[str]) -> None:
        object.__setattr__(self, "_session", session)
        object.__setattr__(self, "_place", place)
        object.__setattr__(self, "_names", names)

    def sandpiper_target(self) -> list[Any]:
        """How a request names this handle."""
        return self._place

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        raise CandidateError(f"{self!r} is not plain data")

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<candidate's {self._names[0]}>"


class Function(Handle):
    """A function, or a closure that a call returned."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._session.call(self._place, args, kwargs)


class Items(Handle):
    """A generator or another iterator; items come one by one."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._session.step(self._place)


class _Open(Handle):
    """A handle whose attributes can be read."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._session.request("get", target=self._place, name=name)


class Class(_Open):
    """A class of the candidate; calling it makes an `Object`."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._session.call(self._place, args, kwargs)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, Object) and self._names[0] in value._names


class Object(_Open):
    """An object of a task about classes."""

    __slots__ = ()

    def _method(self, name: str, *args: Any) -> Any:
        return self._session.call([self._place[0], _joined(self._place[1], name)], args, {})

    def __setattr__(self, name: str, value: Any) -> None:
        self._session.request("set", target=self._place, name=name, value=value)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Object) and self._method("__eq__", other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = Handle.__hash__

    def __len__(self) -> int:
        size = self._method("__len__")
        if type(size) is not int:
            raise CandidateError("__len__ gave no integer")
        return size

    def __bool__(self) -> bool:
        if "__bool__" in self._special() or "__len__" in self._special():
            return bool(self._method("__bool__") if "__bool__" in self._special() else len(self))
        return True

    def _special(self) -> Any:
        return self._method("__dir__")

    def __str__(self) -> str:
        return str(self._method("__str__"))

    def __exit__(self, *error: object) -> None:
        self._method("__exit__", None, None, None)

    def __iter__(self) -> Iterator[Any]:
        found = self._method("__iter__")
        if found is not self and not isinstance(found, Items):
            raise CandidateError("__iter__ gave no iterator")
        return found


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _forward(name: str) -> Any:
    def method(self: Object, *args: Any) -> Any:
        return self._method(name, *args)

    method.__name__ = name
    return method


OPERATORS = (
    "getitem setitem delitem contains call enter next add radd sub rsub mul rmul truediv rtruediv floordiv"
    " mod pow neg pos abs invert and or xor lshift rshift matmul iadd isub imul lt le gt ge int float"
)
for _name in OPERATORS.split():
    setattr(Object, f"__{_name}__", _forward(f"__{_name}__"))
