"""The trusted side's view of a candidate: one process after another, and the requests to it.

Invariants: every request ends by the deadline of the current test; a candidate that hangs, exits or breaks
the protocol is killed, its test is marked (whatever the test's own code catches), and the next test starts
a fresh one; nothing that the candidate sends is ever compared by the candidate's code, except objects in
tasks whose reference solution has classes.
"""

from __future__ import annotations

import builtins
import os
import sys
import time

from sandpiper.runners import codec
from sandpiper.runners.crossing import Errors, mirror
from sandpiper.runners.frames import SIGXCPU, Child, Died, Late, exit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Abort(BaseException):
    """Ends a test: no `except Exception` in it can turn a dead candidate into a pass."""


class Session:
    """One candidate process after another, and the requests to it."""

    def __init__(self, argv: list[str], env: dict[str, str], cpu_s: float, objects: bool) -> None:
        self._argv, self._env, self._cpu_s = argv, env, cpu_s
        self._child: Child | None = None
        self._sequence = 0
        self._imported: list[str] = []
        self._callbacks: list[Callable[..., Any]] = []
        self.errors = Errors()
        self._forked = False
        self.deadline = time.monotonic()
        self._cpu_before = 0.0
        self.objects_allowed = objects
        self.aborted: tuple[str, str] | None = None
        """(kind, message) once the current test has lost its candidate."""

    def begin(self, deadline: float) -> None:
        """Start a test: a fork of the process that imported the modules, or a fresh process."""
        self.deadline, self.aborted = deadline, None
        self._callbacks.clear()
        if self._imported:
            self._ready()
            self._forked = True
            self.request("fork")

    def finish(self) -> None:
        """End the test's fork, so that nothing of it reaches the next test."""
        if self._child is None or not self._forked:
            return
        self.deadline = max(self.deadline, time.monotonic() + 0.5)
        try:
            self._child.send(codec.encode({"op": "end", "seq": 0}), self.deadline)
            frame = codec.decode(self._child.receive(self.deadline), self._inert)
            if not isinstance(frame, dict) or "ended" not in frame:
                self.close()
        except (Late, Died, codec.CodecError):
            self.close()
        self._forked = False

    def close(self) -> int:
        """Kill the candidate; the wait status of its process, 0 when there was none."""
        child, self._child, self._forked = self._child, None, False
        if child is None:
            return 0
        self._cpu_before += child.cpu_s()
        return child.kill()

    def cpu_used(self) -> float:
        """CPU time of all candidate processes so far, but for forks that still run or were killed."""
        return self._cpu_before + (self._child.cpu_s() if self._child else 0.0)

    def load(self, module: str) -> list[str]:
        """Import `module` in the candidate; its names. Raises what the import raised."""
        names = self.request("import", module=module)
        if module not in self._imported:
            self._imported.append(module)
        return [str(name) for name in names]

    def call(self, target: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call `target` with plain data; changes that it made to its arguments are made to ours."""
        mine = [list(args), kwargs]
        reply = self._exchange("call", {"target": target, "arguments": codec.encode(mine, self._outgoing)})
        if isinstance(reply.get("arguments"), bytes):
            mirror(mine, codec.decode(reply["arguments"], self._incoming))
        return reply["ok"]

    def request(self, operation: str, **fields: Any) -> Any:
        """One request; its value."""
        return self._exchange(operation, fields)["ok"]

    def step(self, target: list[Any]) -> Any:
        """The next item of a remote iterator. Raises StopIteration."""
        reply = self._exchange("next", {"target": target})
        if reply.get("stop") is True:
            raise StopIteration
        return reply["ok"]

    def _exchange(self, operation: str, fields: dict[str, Any]) -> dict[str, Any]:
        if self.aborted:
            raise Abort
        child = self._ready() if operation != "import" else self._started()
        self._sequence += 1
        frame = {"op": operation, "seq": self._sequence, **fields}
        try:
            child.send(codec.encode(frame, self._outgoing), self.deadline)
            return self._answer(child, self._sequence)
        except Late:
            self._abort("timeout", "the candidate was still running when its time was up")
        except Died as error:
            ended = self.close()
            status = ended if error.status is None else error.status
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == SIGXCPU:
                self._abort("timeout", "the candidate used up its CPU time")
            else:
                reason = f"{error} ({exit_text(status)})"
                self._abort("exception", f"the candidate's process did not answer: {reason}")
        raise Abort

    def _answer(self, child: Child, sequence: int) -> dict[str, Any]:
        while True:
            try:
                frame = codec.decode(child.receive(self.deadline), self._incoming)
            except (codec.CodecError, AttributeError, TypeError, IndexError) as error:
                raise Died(f"it broke the protocol: {error}") from None
            if not isinstance(frame, dict):
                raise Died("it broke the protocol")
            if "callback" in frame:
                self._call_back(child, frame)
            elif "ended" in frame:
                raise Died("it exited during the call", _status_of(frame["ended"]))
            elif "printed" in frame:
                sys.stdout.write(str(frame["printed"]))
            elif frame.get("seq") != sequence or not {"ok", "error"} & set(frame):
                raise Died("it broke the protocol")
            elif "error" in frame:
                raise self._error(frame["error"])
            else:
                return frame

    def _call_back(self, child: Child, frame: dict[Any, Any]) -> None:
        """The candidate calls a function that the test passed to it."""
        reply: dict[str, Any] = {"op": "return", "seq": frame.get("seq")}
        try:
            function = self._callbacks[frame["callback"]]
            reply["ok"] = function(*frame["args"], **frame["kwargs"])
        except Exception as error:
            names = [base.__name__ for base in type(error).__mro__]
            reply["error"] = {"names": names, "text": str(error)}
        child.send(codec.encode(reply, self._outgoing), self.deadline)

    def _started(self) -> Child:
        if self._child is None:
            try:
                self._child = Child(self._argv, self._env, self._cpu_s)
            except OSError as error:  # the candidate's leftovers use up what the sandbox allows
                self._abort("exception", f"no new process for the candidate: {error.strerror}")
                raise Abort from None
        return self._child

    def _ready(self) -> Child:
        """A process with every module imported."""
        if self._child is None:
            self._started()
            for module in self._imported:
                self.request("import", module=module)
        return self._started()

    def _abort(self, kind: str, message: str) -> None:
        """The current test has lost its candidate."""
        self.close()
        self.aborted = (kind, message)

    def _error(self, described: Any) -> BaseException:
        """The exception that stands for the candidate's. Only names and plain values cross."""
        try:
            name, error = self.errors.exception(described)
        except (TypeError, KeyError, IndexError):
            raise Died("it broke the protocol") from None
        if error is None:
            self._abort("exception", f"the candidate raised {name}")
            return Abort()
        return error

    def _outgoing(self, value: Any) -> codec.Extension:
        """How values of the test that are not plain data reach the candidate."""
        target = getattr(type(value), "sandpiper_target", None)
        if target is not None:
            return codec.Extension("remote", target(value))
        name = codec.builtin_type(value)
        if name is not None:
            return codec.Extension("builtin", name)
        if callable(value):
            self._callbacks.append(value)
            return codec.Extension("callback", len(self._callbacks) - 1)
        raise codec.CodecError(f"{type(value).__name__} is not plain data")

    def _incoming(self, tag: str, value: Any) -> Any:
        """What stands here for a value of the candidate that is not plain data."""
        from sandpiper.runners import handles  # noqa: PLC0415 - most candidates return only plain data

        if tag == "callback":
            return self._callbacks[value]
        if tag == "builtin":
            kind = getattr(builtins, value)
            return kind if isinstance(kind, type) else None
        return handles.make(self, value)

    @staticmethod
    def _inert(tag: str, value: Any) -> None:
        return None


def _status_of(told: Any) -> int:
    """The wait status that the candidate's side told of its fork."""
    return told & 0xFFFF if type(told) is int else 0
