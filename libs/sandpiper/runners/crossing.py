"""How exceptions and changed arguments of a candidate become the test's own."""

from __future__ import annotations

import builtins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CandidateError(Exception):
    """An exception of the candidate that is below no builtin class but Exception."""


class Errors:
    """Local classes that stand for the candidate's exception classes."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], type[Exception]] = {}

    def define(self, module: str, name: str, names: list[str]) -> type[Exception]:
        """The class for one that the test imported, below its nearest builtin base."""
        key = (module, name)
        if key not in self._known:
            self._known[key] = type(name, (_builtin(names),), {})
        return self._known[key]

    def exception(self, described: dict[str, Any]) -> tuple[str, Exception | None]:
        """Name and local exception for `{names, module, text, args}`; None for one that ends the process.

        Raises:
            TypeError, KeyError, IndexError: malformed.
        """
        names = [str(name) for name in described["names"]]
        text, args = str(described["text"]), list(described["args"])
        if "Exception" not in names:
            return names[0], None
        kind = self._known.get((str(described["module"]), names[0])) or _builtin(names)
        made = kind.__new__(kind)
        made.args = tuple(args) or ((text,) if text else ())
        made.__dict__["from_candidate"] = f"{names[0]}: {text}"
        if isinstance(made, SyntaxError):
            made.msg = text
        return names[0], made


def _builtin(names: list[str]) -> type[Exception]:
    for name in names:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception) and kind is not Exception:
            return kind
    return CandidateError


def mirror(mine: Any, theirs: Any) -> None:
    """Make `mine` equal to `theirs` in place, wherever both are mutable containers of one type."""
    if type(mine) is not type(theirs):
        return
    if isinstance(mine, list):
        mine[:] = [_kept(old, new) for old, new in zip(mine, theirs)] + theirs[len(mine) :]  # noqa: B905
    elif isinstance(mine, dict):
        merged = {key: _kept(mine.get(key), new) for key, new in theirs.items()}
        mine.clear()
        mine.update(merged)
    elif isinstance(mine, set):
        mine.clear()
        mine.update(theirs)


def _kept(old: Any, new: Any) -> Any:
    """`old` made equal to `new` where that works in place (other names may refer to it), else `new`."""
    if isinstance(old, (list, dict, set)) and type(old) is type(new):
        mirror(old, new)
        return old
    if isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
        return tuple(map(_kept, old, new))
    return old if callable(old) else new
