"""Runs `test_*` functions of plain test modules and explains failures in few words.

Standalone: standard library only, Python 3.9 or newer, no module that is slow to import (`re`, `ast`, `json`,
`traceback`, `enum` cost 10-20 ms each). Shared by the visible and the hidden runner.
"""

from __future__ import annotations

import _ast

TYPE_CHECKING = False  # `typing` costs 20 ms to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PyCF_ONLY_AST = 0x400
VALUE_CHARS = 120
LEFT, RIGHT = "__sandpiper_left__", "__sandpiper_right__"
OPERATORS = {
    _ast.Eq: "==",
    _ast.NotEq: "!=",
    _ast.Lt: "<",
    _ast.LtE: "<=",
    _ast.Gt: ">",
    _ast.GtE: ">=",
    _ast.Is: "is",
    _ast.IsNot: "is not",
    _ast.In: "in",
    _ast.NotIn: "not in",
}


class TestModule:
    """One executed test module: its namespace and what its comparisons saw."""

    __test__ = False

    def __init__(self, path: str, source: str, namespace: dict[str, Any] | None = None) -> None:
        self.path = path
        self.lines = source.splitlines()
        self.seen: dict[int, list[Any]] = {}
        self.asserts: dict[int, Any] = {}
        self.namespace: dict[str, Any] = {"__name__": _module_name(path), "__file__": path}
        self.namespace.update(namespace or {})
        self._source = source

    def execute(self) -> None:
        """Compile and run the module's top level. Raises whatever the module raises."""
        tree = compile(self._source, self.path, "exec", PyCF_ONLY_AST)
        self._record_comparisons(tree)
        self.namespace[LEFT], self.namespace[RIGHT] = self._saw_left, self._saw_right
        exec(compile(tree, self.path, "exec"), self.namespace)

    def _saw_left(self, line: int, value: Any) -> Any:
        self.seen[line] = [value]
        return value

    def _saw_right(self, line: int, value: Any) -> Any:
        self.seen.setdefault(line, []).append(value)
        return value

    def cases(self) -> list[tuple[str, Callable[[], Any]]]:
        """Test functions in the order of their definition, parametrised ones expanded."""
        found: list[tuple[str, Callable[[], Any]]] = []
        for name, value in list(self.namespace.items()):
            if name.startswith("test") and callable(value) and not isinstance(value, type):
                found += expand(name, value)
        return found

    def explain(self, error: BaseException) -> str:
        """The failing assertion with the values it saw, or the exception with its place."""
        line = self.line_of(error)
        node = self.asserts.get(line)
        if isinstance(error, AssertionError) and node is not None:
            return self._explain_assert(node, line, error)
        text = describe(error)
        return f"{text} (in `{self.text(line)}`)" if line else text

    def line_of(self, error: BaseException) -> int:
        """The innermost line of this module that `error` came through; 0 when there is none."""
        line, step = 0, error.__traceback__
        while step is not None:
            if step.tb_frame.f_code.co_filename == self.path:
                line = step.tb_lineno
            step = step.tb_next
        return line

    def text(self, line: int) -> str:
        """Source of one line, stripped and cut."""
        return cut(self.lines[line - 1].strip()) if 0 < line <= len(self.lines) else ""

    def _explain_assert(self, node: Any, line: int, error: AssertionError) -> str:
        text = self._segment(node)
        if error.args:
            return f"{text}: {cut(safe_str(error))}"
        seen = self.seen.get(line, [])
        if len(seen) != 2:
            return text
        left, right = show(seen[0]), show(seen[1])
        operator = OPERATORS[type(node.test.ops[0])]
        if operator == "==":
            return f"{text}: got {left}, expected {right}"
        return f"{text}: {left} {operator} {right} is false"

    def _segment(self, node: Any) -> str:
        """Source of a statement on one line."""
        lines = [line.encode() for line in self.lines[node.lineno - 1 : node.end_lineno]]
        if not lines:
            return ""
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return cut(" ".join(line.strip().decode("utf-8", "replace") for line in lines), 200)

    def _record_comparisons(self, tree: Any) -> None:
        """Wrap both sides of `assert a <op> b` so that a failure can show them; nothing else changes."""
        for node in _walk(tree):
            if not isinstance(node, _ast.Assert):
                continue
            test = node.test
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                self.asserts[line] = node
            if node.msg is None and isinstance(test, _ast.Compare) and len(test.ops) == 1:
                test.left = _recorded(LEFT, test.left, node)
                test.comparators[0] = _recorded(RIGHT, test.comparators[0], node)


def expand(name: str, function: Any) -> list[tuple[str, Callable[[], Any]]]:
    """One case per set of parameters; a plain function is one case."""
    sets = getattr(function, "__sandpiper_parameters__", None)
    if sets is None:
        return [(name, function)]
    return [(f"{name}[{label}]", _bound(function, values)) for label, values in sets]


def _bound(function: Any, values: dict[str, Any]) -> Callable[[], Any]:
    return lambda: function(**values)


def describe(error: BaseException) -> str:
    """`ValueError: message`, without trusting the exception's own `__str__`."""
    name = type(error).__name__
    if isinstance(error, SyntaxError):
        file = (error.filename or "").rsplit("/", 1)[-1]
        place = f" ({file} line {error.lineno}: `{cut((error.text or '').strip())}`)" if error.lineno else ""
        return f"{name}: {error.msg}{place}"
    text = safe_str(error)
    return cut(f"{name}: {text}" if text else name, 300)


def show(value: Any) -> str:
    """A short repr that cannot raise."""
    try:
        return cut(repr(value))
    except Exception as error:  # a candidate's __repr__
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"


def safe_str(value: Any) -> str:
    """`str(value)` that cannot raise."""
    try:
        return str(value)
    except Exception as error:
        return f"<message raises {type(error).__name__}>"


def cut(text: str, limit: int = VALUE_CHARS) -> str:
    """`text` of at most about `limit` characters; the cut is marked."""
    return text if len(text) <= limit else f"{text[: limit - 20]} …[{len(text)} chars]"


def _module_name(path: str) -> str:
    return path.rsplit("/", 1)[-1].rsplit(".", 1)[0]


def _recorded(function: str, value: Any, node: Any) -> Any:
    """The call `function(<line of node>, value)`, placed where `value` stands."""

    def place(made: Any) -> Any:
        made.lineno, made.col_offset = value.lineno, value.col_offset
        made.end_lineno, made.end_col_offset = value.end_lineno, value.end_col_offset
        return made

    name = place(_ast.Name(id=function, ctx=_ast.Load()))
    line = place(_ast.Constant(value=node.lineno, kind=None))
    return place(_ast.Call(func=name, args=[line, value], keywords=[]))


def _walk(node: Any) -> list[Any]:
    found, stack = [], [node]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, _ast.AST):
            found.append(item)
            stack.extend(getattr(item, field, None) for field in item._fields)
    return found
