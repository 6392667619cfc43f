"""From a command to checked limits and files. Zero means "the default"; above a ceiling is refused, never
cut.
"""

from __future__ import annotations

import re

from sandpiper.v1 import sandbox_pb2 as pb
from services.sandbox_executor.backend.protocol import FileSpec, Limits
from services.sandbox_executor.config import Ceilings

DEFAULTS = pb.ExecutionLimits(
    wall_s=10, cpu_s=5, memory_bytes=256 << 20, pids=64, disk_bytes=32 << 20, output_bytes=64 << 10
)
SMALLEST = {"memory_bytes": 8 << 20, "pids": 2, "disk_bytes": 64 << 10}
"""Below these nothing starts at all."""
_SANDBOX_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OUTPUT_FLOOR = 4 << 20


class CommandRefused(Exception):
    """The command asks for something that no executor will do."""


def check(command: pb.SandboxCommand, ceilings: Ceilings) -> Limits:
    """The limits of the command's run. Raises CommandRefused naming the field."""
    if not _SANDBOX_ID.fullmatch(command.sandbox_id):
        raise CommandRefused(f"sandbox_id {command.sandbox_id!r}")
    for name, value in command.env.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            raise CommandRefused(f"env {name!r}")
    if any("\0" in word for word in command.argv):
        raise CommandRefused("argv holds a NUL")
    return _limits(command.limits, ceilings)


def _limits(asked: pb.ExecutionLimits, ceilings: Ceilings) -> Limits:
    values = {}
    for name in ("wall_s", "cpu_s", "memory_bytes", "pids", "disk_bytes", "output_bytes"):
        value = getattr(asked, name) or getattr(DEFAULTS, name)
        if not SMALLEST.get(name, 0) <= value <= getattr(ceilings, name):
            raise CommandRefused(f"limits.{name} = {value}, allowed up to {getattr(ceilings, name)}")
        values[name] = value
    hard = max(ceilings.output_factor * values["output_bytes"], _OUTPUT_FLOOR)
    file_bytes = asked.file_bytes or values["disk_bytes"]
    return Limits(**values, file_bytes=file_bytes, output_hard_bytes=hard, max_files=ceilings.max_files)


def files_of(command: pb.SandboxCommand) -> list[FileSpec]:
    """The files to write."""
    return [FileSpec(file.path, file.content, file.mode) for file in command.files]
