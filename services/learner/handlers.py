"""Messages in: run.commands and trajectories.

Invariant: the handler of a group returns only when the group was consumed by a committed checkpoint, was
discarded and reported, or its run is over; so Kafka redelivers exactly what was not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import structlog
from aiokafka.structs import TopicPartition
from pydantic import ValidationError

from sandpiper.bus.errors import Reject
from sandpiper.bus.message import Received
from sandpiper.runs import RunDocument
from sandpiper.store.errors import StoreError
from sandpiper.topics import RUN_COMMANDS, TRAJECTORIES, Topic
from sandpiper.v1.run_pb2 import RunCommand
from sandpiper.v1.training_pb2 import TrajectoryGroup
from services.learner.buffer import Place, Waiting
from services.learner.creation import Creation
from services.learner.intake import Intake
from services.learner.registry import Registry
from services.learner.run import LearnerRun
from services.learner.scheduler import Scheduler
from services.learner.state.control import Control
from services.learner.steps import Parts

log = structlog.get_logger(__name__)

HEAL_S = 120.0


class Handlers:
    """See the module's docstring."""

    def __init__(
        self, registry: Registry, scheduler: Scheduler, creation: Creation, intake: Intake, parts: Parts
    ) -> None:
        self._registry = registry
        self._scheduler = scheduler
        self._creation = creation
        self._intake = intake
        self._parts = parts

    def table(self) -> dict[Topic, Callable[[Received[Any]], Awaitable[None]]]:
        """Topic -> function."""
        return {RUN_COMMANDS: self.command, TRAJECTORIES: self.trajectories}

    def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """Our partitions are these now."""
        self._registry.assign(p.partition for p in partitions if p.topic == TRAJECTORIES.name)
        self._scheduler.wake()

    # Commands.

    async def command(self, received: Received[RunCommand]) -> None:
        """create | pause | resume | cancel | finish, one at a time per run."""
        message = received.message
        run = self._registry.slot(message.run_id)
        kind = message.WhichOneof("command")
        async with run.lock:
            match kind:
                case "create":
                    await self._creation.create(run, _document(message))
                    await self._until_healed(run)
                case "pause" | "resume":
                    state: Literal["paused", "active"] = "paused" if kind == "pause" else "active"
                    await self._switch(run, Control(state=state, at=received.timestamp))
                case "cancel":
                    await self._end(run, f"cancelled: {message.cancel.reason}")
                case "finish":
                    await self._end(run, f"{message.finish.state}: {message.finish.reason}")
                case _:
                    raise Reject("handler_error", "a command that this learner does not know")
        self._scheduler.wake()

    async def _switch(self, run: LearnerRun, control: Control) -> None:
        if await self._parts.controls.get(run.run_id) is not None:
            await self._parts.controls.put(run.run_id, control)
            await self._registry.read_control(run)

    async def _end(self, run: LearnerRun, reason: str) -> None:
        await self._parts.publisher.unpin(run.run_id)
        if await self._parts.controls.get(run.run_id) is None:
            return  # an evaluation of another run's policy: nothing more is kept of it here
        await self._parts.controls.put(run.run_id, Control(state="ended", reason=reason))
        run.end()
        log.info("run_let_go", run_id=run.run_id, reason=reason)
        try:
            await self._parts.checkpoints.prune(run.run_id, self._parts.options.keep_when_over)
        except StoreError as error:
            log.warning("checkpoint_prune_failed", run_id=run.run_id, error=str(error))

    # Trajectories.

    async def trajectories(self, received: Received[TrajectoryGroup]) -> None:
        """Let a closed group wait for its step."""
        group = received.message
        run = await self._registry.known(group.run_id, received.partition)
        waiting = run.buffer.get(group.group_id)
        if waiting is None:
            if await self._is_settled(run, group):
                return
            waiting = await self._intake.receive(group, _trained(run, group))
            if await self._is_settled(run, group):
                return
            waiting = run.buffer.add(waiting)
        place = Place(TRAJECTORIES.name, received.partition, received.offset)
        if waiting.waits_before(place):
            return  # a copy: the message before it holds the commit point, and copies must not pile up
        await self._wait(run, waiting, place)

    async def _wait(self, run: LearnerRun, waiting: Waiting, place: Place) -> None:
        waiting.places.add(place)
        waiting.waiters += 1
        self._scheduler.wake()
        try:
            await asyncio.shield(waiting.fate)
        finally:
            waiting.waiters -= 1
            if not waiting.fate.done():
                run.buffer.forget(waiting.group_id)

    async def _until_healed(self, run: LearnerRun) -> None:
        """Wait until the events of the newest checkpoint are out. TimeoutError (try again) when that takes
        long."""
        if run.point is None:
            return
        self._scheduler.wake()
        async with asyncio.timeout(HEAL_S):
            await run.healed.wait()

    async def _is_settled(self, run: LearnerRun, group: TrajectoryGroup) -> bool:
        """True when nothing is left to be done for a group. Answers again for one that was consumed."""
        if run.ended or run.point is None:
            return True
        step = run.point.ledger.step_of(group.group_id)
        if step is None:
            return False
        await self._until_healed(run)
        event = await self._parts.checkpoints.event(run.run_id, step)
        if event is not None:
            await self._parts.events.step(event)
        return True


def _document(message: RunCommand) -> RunDocument:
    try:
        return RunDocument.model_validate_json(message.create.document_json)
    except ValidationError as error:
        raise Reject("unparseable", f"run document: {error}"[:2000]) from error


def _trained(run: LearnerRun, group: TrajectoryGroup) -> list[str]:
    if run.point is None:
        return []
    return run.point.ledger.trained(t.ref.episode_id for t in group.trajectories)
