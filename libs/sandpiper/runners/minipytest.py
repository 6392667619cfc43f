"""The part of pytest's interface that plain tests use, for the `asserts` runner: `raises`, `approx`,
`mark.parametrize`, `fail`. Importing anything else from it is an error, so a test never passes by accident.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` costs 20 ms to import
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


class _Raised:
    """Result of `raises` as context manager; `value` is the exception once it was raised."""

    def __init__(self, expected: Any, match: str | None) -> None:
        self.expected, self.match = expected, match
        self.value: Any = None

    def __enter__(self) -> _Raised:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        if kind is None:
            raise AssertionError(f"DID NOT RAISE {_names(self.expected)}")
        if not issubclass(kind, self.expected):
            return False
        self.value = value
        if self.match is not None:
            import re  # noqa: PLC0415 - slow to import, and rarely needed

            if not re.search(self.match, str(value)):
                raise AssertionError(f"{str(value)!r} does not match {self.match!r}")
        return True

    @property
    def type(self) -> Any:
        """The class that was raised."""
        return type(self.value)


def raises(
    expected: type[BaseException] | tuple[type[BaseException], ...], *args: Any, **kwargs: Any
) -> _Raised:
    """As `pytest.raises`, as context manager or with a callable and its arguments."""
    context = _Raised(expected, None if args else kwargs.pop("match", None))
    if args:
        with context:
            args[0](*args[1:], **kwargs)
    elif kwargs:
        raise TypeError(f"raises: unknown arguments {sorted(kwargs)}")
    return context


class approx:  # noqa: N801 - pytest's name
    """As `pytest.approx` for numbers and flat lists, tuples and dicts. `nan` equals nothing."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expected: Any, rel: float = 1e-6, abs: float = 1e-12) -> None:
        self.expected, self.rel, self.abs = expected, rel, abs

    def __eq__(self, actual: object) -> bool:
        return self._close(actual, self.expected)

    def __repr__(self) -> str:
        return f"approx({self.expected!r})"

    def _close(self, actual: Any, expected: Any) -> bool:
        if isinstance(expected, dict):
            return (
                isinstance(actual, dict)
                and actual.keys() == expected.keys()
                and all(self._close(actual[key], expected[key]) for key in expected)
            )
        if isinstance(expected, (list, tuple)):
            return (
                isinstance(actual, (list, tuple))
                and len(actual) == len(expected)
                and all(map(self._close, actual, expected))
            )
        if not isinstance(actual, (int, float, complex)):
            return bool(actual == expected) and isinstance(actual, type(expected))
        return actual == expected or _near(actual, expected, max(self.abs, self.rel * abs(expected)))


def fail(reason: str = "") -> None:
    """Fail the test."""
    raise AssertionError(reason)


def _near(actual: Any, expected: Any, tolerance: float) -> bool:
    return bool(tolerance != float("inf") and abs(actual - expected) <= tolerance)


class _Mark:
    """`mark.parametrize` only."""

    @staticmethod
    def parametrize(names: str | Sequence[str], values: Sequence[Any]) -> Callable[[Any], Any]:
        """Run the test once per entry of `values`. Decorators stack as in pytest."""
        keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

        def decorate(function: Any) -> Any:
            inner: list[tuple[str, dict[str, Any]]]
            inner = getattr(function, "__sandpiper_parameters__", [("", {})])
            function.__sandpiper_parameters__ = [
                (f"{label}-{index}" if label else str(index), {**bound, **_bind(keys, entry)})
                for label, bound in inner
                for index, entry in enumerate(values)
            ]
            return function

        return decorate


def _bind(keys: list[str], entry: Any) -> dict[str, Any]:
    if len(keys) == 1:
        return {keys[0]: entry}
    if len(keys) != len(entry):
        raise ValueError(f"parametrize: {len(keys)} names but {len(entry)} values")
    return dict(zip(keys, entry))  # noqa: B905 - `strict` is newer than Python 3.9


def _names(expected: Any) -> str:
    kinds = expected if isinstance(expected, tuple) else (expected,)
    return " or ".join(kind.__name__ for kind in kinds)


mark = _Mark()
