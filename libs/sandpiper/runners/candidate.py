"""The candidate's side: imports the candidate's modules, calls them on request, answers with plain data.

    python3 -I -S -B candidate.py READ_FD WRITE_FD      (working directory: the workspace)

Nothing here is trusted: this process runs the candidate's code and holds no test, expected value, plan or
private descriptor. The first process imports the modules; each test gets a fork of it, so that state never
passes from test to test. While a fork works, its parent waits for it, so that one pair of pipes serves both.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import builtins
import io

from sandpiper.runners import codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PRINTED_CHARS = 16_384
VIEWS = tuple(type(view) for view in (vars(sys).keys(), vars(sys).values(), vars(sys).items()))
SCALARS = (type(None), bool, int, float, complex, str, bytes)


class Server:
    """Answers frames `{"op", "seq", …}` until told to end."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd, self._write_fd = read_fd, write_fd
        self._objects: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._depth = 0

    def serve(self, until: int | None = None) -> Any:
        """Answer requests; with `until`, return the parent's answer to our own request of that number."""
        while True:
            frame = self._receive()
            operation = frame["op"]
            if operation == "return" and frame["seq"] == until:
                return frame
            if operation == "end":
                os._exit(0)
            if operation == "fork":
                self._fork(frame["seq"])
            else:
                self._answer(frame)

    def _fork(self, number: int) -> None:
        pid = os.fork()
        if pid:
            status = os.waitpid(pid, 0)[1]
            self._send({"seq": number, "ended": status})
        else:
            self._send({"seq": number, "ok": None})

    def _answer(self, frame: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"seq": frame["seq"]}
        real, sys.stdout = sys.stdout, io.StringIO()
        try:
            reply.update(getattr(self, f"_do_{frame['op']}")(frame))
            data = self._encode(reply)
        except BaseException as error:  # SystemExit too: the trusted side decides what it means
            data = self._encode({"seq": frame["seq"], "error": describe(error)})
        finally:
            printed, sys.stdout = sys.stdout, real
        text = printed.getvalue() if isinstance(printed, io.StringIO) else ""
        if text:
            self._write(self._encode({"printed": text[:PRINTED_CHARS]}))
        self._write(data)

    def _do_import(self, frame: dict[str, Any]) -> dict[str, Any]:
        __import__(frame["module"])
        return {"ok": [name for name in vars(sys.modules[frame["module"]]) if not name.startswith("__")]}

    def _do_get(self, frame: dict[str, Any]) -> dict[str, Any]:
        return {"ok": getattr(self._target(frame["target"]), frame["name"])}

    def _do_set(self, frame: dict[str, Any]) -> dict[str, Any]:
        setattr(self._target(frame["target"]), frame["name"], frame["value"])
        return {"ok": None}

    def _do_call(self, frame: dict[str, Any]) -> dict[str, Any]:
        before = frame["arguments"]
        args, kwargs = arguments = codec.decode(before, self._extension)
        result = self._target(frame["target"])(*args, **kwargs)
        if all(isinstance(value, SCALARS) for value in (*args, *kwargs.values())):
            return {"ok": result}
        after = self._encode(arguments)
        return {"ok": result} if after == before else {"ok": result, "arguments": after}

    def _do_next(self, frame: dict[str, Any]) -> dict[str, Any]:
        iterator = self._target(frame["target"])
        try:
            return {"ok": next(iterator)}
        except StopIteration:
            return {"ok": None, "stop": True}

    def _target(self, target: list[Any]) -> Any:
        """`[module, dotted name]` or `[object number, dotted name]`."""
        place, path = target
        found = sys.modules[place] if isinstance(place, str) else self._objects[place]
        for name in path.split(".") if path else ():
            found = getattr(found, name)
        return found

    def _encode(self, value: Any) -> bytes:
        return codec.encode(value, self._reference)

    def _reference(self, value: Any) -> codec.Extension:
        """What stands for a value that is not plain data."""
        if isinstance(value, Callback):
            return codec.Extension("callback", value.number)
        name = codec.builtin_type(value)
        if name is not None:
            return codec.Extension("builtin", name)
        if isinstance(value, VIEWS):
            value = iter(value)
        kind = "object"
        if isinstance(value, type):
            kind = "class"
        elif callable(value):
            kind = "function"
        elif hasattr(type(value), "__next__"):
            kind = "iterator"
        module, path = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
        if kind in ("class", "function") and isinstance(module, str) and _found(module, path) is value:
            place: list[Any] = [module, path]
        else:
            place = [self._number(value), ""]
        names = [base.__name__ for base in (value if kind == "class" else type(value)).__mro__]
        return codec.Extension("remote", [kind, place, names])

    def _number(self, value: Any) -> int:
        number = self._numbers.setdefault(id(value), len(self._numbers))
        self._objects[number] = value
        return number

    def _extension(self, tag: str, value: Any) -> Any:
        if tag == "callback":
            return Callback(self, value)
        if tag == "builtin":
            return getattr(builtins, value)
        return self._target(value)

    def _receive(self) -> Any:
        size = int.from_bytes(self._exactly(4), "big")
        return codec.decode(self._exactly(size), self._extension)

    def _send(self, value: Any) -> None:
        self._write(self._encode(value))

    def _write(self, data: bytes) -> None:
        view = memoryview(len(data).to_bytes(4, "big") + data)
        while view:
            view = view[os.write(self._write_fd, view) :]

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = os.read(self._read_fd, size)
            if not part:
                os._exit(0)  # the trusted side is gone
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def call_back(self, number: int, args: Any, kwargs: Any) -> Any:
        """Call a function of the test and wait for its result."""
        self._depth += 1
        self._send({"callback": number, "seq": -self._depth, "args": list(args), "kwargs": kwargs})
        frame = self.serve(until=-self._depth)
        self._depth -= 1
        if "error" in frame:
            raise _error_of(frame["error"])
        return frame["ok"]


class Callback:
    """Stands for a function that a test passed as an argument."""

    def __init__(self, server: Server, number: int) -> None:
        self.server, self.number = server, number

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.server.call_back(self.number, args, kwargs)


def describe(error: BaseException) -> dict[str, Any]:
    """Names of the exception's classes, its module, its text and its plain arguments."""
    text = _text(error)
    if isinstance(error, SyntaxError):
        text = f"{error.msg} (line {error.lineno}: `{(error.text or '').strip()[:100]}`)"
    names = [base.__name__ for base in type(error).__mro__]
    args = [arg for arg in error.args if isinstance(arg, (str, int, float, bool, type(None)))][:4]
    return {
        "names": names[:20],
        "module": str(type(error).__module__),
        "text": text[:500],
        "args": [arg[:500] if isinstance(arg, str) else arg for arg in args],
    }


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def _error_of(described: dict[str, Any]) -> BaseException:
    for name in described["names"]:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            return kind(described["text"])
    return RuntimeError(described["text"])


def _found(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def main(argv: list[str]) -> None:
    """Serve on the two descriptors given."""
    sys.path[0] = os.getcwd()
    sys.argv = [""]
    Server(int(argv[0]), int(argv[1])).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
