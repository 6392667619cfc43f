"""What this service tells the orchestrator, and how it waits to see it done.

Invariants: nothing is published before everything is checked and every large value is stored; the ids of
one command are the same on every try, so that the orchestrator can drop the second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sandpiper.bus.message import Outgoing
from sandpiper.ids import derived_id, new_id
from sandpiper.runs import RunDocument
from sandpiper.topics import RUN_COMMANDS, TASKS_SUBMITTED
from sandpiper.v1.run_pb2 import CancelRun, CreateRun, PauseRun, ResumeRun, RunCommand
from sandpiper.v1.tasks_pb2 import TaskSetSubmitted
from services.api.intake.tasksets import TaskSetUpload
from services.api.services import Services

T = TypeVar("T")
FIRST_LOOK_S = 0.02
SLOWEST_LOOK_S = 0.25
VERBS = ("pause", "resume", "cancel")


def task_set_id(upload: TaskSetUpload, sha256: str) -> str:
    """The same upload has the same id, so that submitting it twice brings one task set."""
    return derived_id("ts", upload.name, upload.version, sha256)


def message_id(seed: str | None, *parts: str) -> str:
    """The same on every retry with one Idempotency-Key, else fresh."""
    return derived_id("msg", seed, *parts) if seed else new_id("msg")


async def submit_task_set(services: Services, ident: str, upload: TaskSetUpload, caller: str) -> None:
    """Store the tasks, then announce them."""
    blob = await services.objects.put_by_digest("task-sets", upload.data, ".jsonl.zst")
    message = TaskSetSubmitted(
        task_set_id=ident,
        name=upload.name,
        version=upload.version,
        tasks=blob,
        task_count=upload.task_count,
        submitted_by=caller,
    )
    announced = Outgoing(TASKS_SUBMITTED, message, key=ident, message_id=derived_id("msg", "submit", ident))
    await services.publisher.send(announced, timeout=services.settings.publish_s)


def run_id_of(seed: str | None) -> str:
    """A new run's id; the same for the same `seed`."""
    return derived_id("run", seed) if seed else new_id("run")


async def create_run(
    services: Services, run_id: str, document: RunDocument, caller: str, seed: str | None
) -> None:
    """Announce a run."""
    command = RunCommand(
        run_id=run_id, create=CreateRun(document_json=document.model_dump_json(), requested_by=caller)
    )
    await _command(services, command, message_id(seed, "create"))


async def control_run(services: Services, run_id: str, verb: str, seed: str | None) -> None:
    """Announce a `pause`, `resume` or `cancel`."""
    command = RunCommand(run_id=run_id)
    if verb == "pause":
        command.pause.CopyFrom(PauseRun())
    elif verb == "resume":
        command.resume.CopyFrom(ResumeRun())
    else:
        command.cancel.CopyFrom(CancelRun(reason="cancelled by request"))
    await _command(services, command, message_id(seed, verb, run_id))


async def _command(services: Services, command: RunCommand, ident: str) -> None:
    out = Outgoing(RUN_COMMANDS, command, key=command.run_id, message_id=ident)
    await services.publisher.send(out, timeout=services.settings.publish_s)


async def seen(look: Callable[[], Awaitable[T | None]], wait_s: float) -> T | None:
    """Look again and again until there is something; None after `wait_s`."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + wait_s
    pause = FIRST_LOOK_S
    while (found := await look()) is None:
        if loop.time() + pause > ends:
            return None
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, SLOWEST_LOOK_S)
    return found
