"""What the episode state machine needs from an agent protocol.

A harness is a pure function of the task and of what was said: no clock, no I/O, no state of its own,
so that an episode can be continued by any replica and shown again from its record.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from sandpiper.v1.sandbox_pb2 import SandboxResult
from services.rollout_orchestrator.taskspec import TaskSpec

Message = dict[str, str]
"""`{"role": …, "content": …}`."""


@dataclass(frozen=True)
class Action:
    """What the policy asks to do in a turn.

    `run` writes `files` and runs `argv`; `submit` ends the episode; `invalid` executes nothing and
    answers with `note`.
    """

    kind: Literal["run", "submit", "invalid"]
    files: dict[str, str] = field(default_factory=dict)
    argv: tuple[str, ...] = ()
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data for the record of the turn."""
        return asdict(self) | {"argv": list(self.argv)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Action:
        """The action that `to_json` wrote."""
        return cls(data["kind"], dict(data["files"]), tuple(data["argv"]), data["note"])


@dataclass(frozen=True)
class Observation:
    """What the policy is shown next, and whether the episode is over without another turn."""

    text: str
    done: bool


class Harness(Protocol):
    """One agent protocol."""

    def opening(self, task: TaskSpec) -> list[Message]:
        """System and user message of turn 0."""
        ...

    def parse(self, task: TaskSpec, text: str) -> Action:
        """The action of a reply. `text` is what the policy generated, without the task's `reply_prefix`."""
        ...

    def observe(self, task: TaskSpec, result: SandboxResult) -> Observation:
        """What a finished execution tells the policy."""
        ...
