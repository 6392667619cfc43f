"""The sandbox command that grades an episode, its nonce, and the context that finds its way back."""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from sandpiper.execution import execution_limits
from sandpiper.ids import derived_id
from sandpiper.tasks.languages import hidden_argv
from sandpiper.tasks.model import Files, Task
from sandpiper.tasks.plan import grading_files, grading_limits, private_plan
from sandpiper.topics import SANDBOX_RESULTS_GRADER
from sandpiper.v1.grading_pb2 import GradeEpisode
from sandpiper.v1.sandbox_pb2 import FileWrite, SandboxCommand


class BadContext(Exception):
    """A sandbox result whose context is not ours."""


@dataclass(frozen=True)
class Context:
    """What the second half of the saga needs; rides in the command and comes back in the result. The sandbox
    never sees it.
    """

    request: GradeEpisode
    started_at: float

    def pack(self) -> bytes:
        """Bytes for `SandboxCommand.context`."""
        return struct.pack("!d", self.started_at) + self.request.SerializeToString(deterministic=True)

    @staticmethod
    def unpack(data: bytes) -> Context:
        """The inverse. Raises BadContext."""
        try:
            (started_at,) = struct.unpack_from("!d", data)
            request = GradeEpisode.FromString(data[8:])
        except (struct.error, DecodeError) as error:
            raise BadContext(str(error)) from None
        if not request.request_id:
            raise BadContext("no request id")
        return Context(request, started_at)


def command_id(request_id: str) -> str:
    """The same command for the same request, so that a redelivered request is not run twice."""
    return derived_id("grade", request_id)


def nonce(key: bytes, request_id: str) -> str:
    """Unguessable without `key`, and the same for a redelivery, whose result may be an earlier run's."""
    return hmac.new(key, command_id(request_id).encode(), hashlib.sha256).hexdigest()


def files_to_write(task: Task, request: GradeEpisode) -> Files:
    """Files of the grading workspace beside what is restored from the snapshot.

    Without a snapshot the policy never wrote anything: the untouched workspace is graded.
    """
    return grading_files(task, None if request.snapshot.uri else task.workspace)


def has_artifacts(task: Task, request: GradeEpisode) -> bool:
    """False when it is plain without running anything that an artifact is missing."""
    return bool(request.snapshot.uri) or set(task.graded_paths()) <= set(task.workspace)


def grading_command(task: Task, context: Context, key: bytes) -> SandboxCommand:
    """The command: fresh sandbox, declared artifacts only, tests in the private plan, destroyed after."""
    request = context.request
    name = command_id(request.request_id)
    command = SandboxCommand(
        command_id=name,
        ref=request.ref,
        reply_topic=SANDBOX_RESULTS_GRADER.name,
        reply_key=request.ref.episode_id or request.request_id,
        sandbox_id=name,
        argv=hidden_argv(task),
        limits=execution_limits(grading_limits(task)),
        destroy=True,
        private_channel=True,
        private_input=private_plan(task, nonce(key, request.request_id)),
        context=context.pack(),
        language=task.language,
    )
    for path, text in sorted(files_to_write(task, request).items()):
        command.files.append(FileWrite(path=path, content=text.encode()))
    if request.snapshot.uri:
        command.base.CopyFrom(request.snapshot)
        command.keep.extend(task.graded_paths())
    return command
