"""Message -> function. `sandbox.commands` is all that the executor consumes.

Invariants: a command id has one result, stored before it is published; a command that is delivered again,
even while it runs, is answered with that result and not run again; a command past its deadline is answered
without being run.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

import structlog

from sandpiper.bus.errors import Reject, Retry
from sandpiper.bus.message import Outgoing, Received
from sandpiper.bus.producer import Producer
from sandpiper.clock import Clock
from sandpiper.ids import derived_id
from sandpiper.store.results import ResultStore
from sandpiper.topics import TOPICS, Topic
from sandpiper.v1 import sandbox_pb2 as pb
from services.sandbox_executor import results
from services.sandbox_executor.executor import Executor

log = structlog.get_logger(__name__)

_RECENT = 256
"""Finished results kept in memory, for the time in which the object store cannot take them."""


class CommandHandler:
    """Answers each command once."""

    def __init__(
        self, executor: Executor, stored: ResultStore, producer: Producer, clock: Clock, executor_id: str
    ) -> None:
        self._executor = executor
        self._stored = stored
        self._producer = producer
        self._clock = clock
        self._executor_id = executor_id
        self._running: dict[str, asyncio.Future[bytes]] = {}
        self._recent: OrderedDict[str, bytes] = OrderedDict()

    async def __call__(self, received: Received[pb.SandboxCommand]) -> None:
        """Handle one delivery. Raises Reject for a command that nobody can be answered about."""
        command = received.message
        topic = _reply_topic(command)
        structlog.contextvars.bind_contextvars(
            command_id=command.command_id, episode_id=command.ref.episode_id, sandbox_id=command.sandbox_id
        )
        result = pb.SandboxResult.FromString(await self._result(received))
        result.context = command.context
        await self._producer.send(
            Outgoing(
                topic,
                result,
                key=command.reply_key or command.command_id,
                message_id=derived_id("result", command.command_id),
                causation_id=received.headers.message_id,
                deadline=received.headers.deadline,
            )
        )

    async def _result(self, received: Received[pb.SandboxCommand]) -> bytes:
        command_id = received.message.command_id
        running = self._running.get(command_id)
        if running is not None:
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                if running.cancelled():
                    raise Retry(f"command {command_id} was abandoned under another delivery") from None
                raise
        future = self._running[command_id] = asyncio.get_running_loop().create_future()
        try:
            data = await self._stored_or_run(received)
        except BaseException:
            future.cancel()
            raise
        else:
            future.set_result(data)
            return data
        finally:
            del self._running[command_id]

    async def _stored_or_run(self, received: Received[pb.SandboxCommand]) -> bytes:
        command = received.message
        data = self._recent.get(command.command_id)
        if data is None:
            data = await self._stored.get(command.command_id)
            if data is not None:
                log.info("command.answered_from_store")
                return data
            if received.headers.expired(self._clock.time()):
                return self._sign(results.failed("deadline", "deadline", "it passed in the queue"), received)
            result = await self._executor.execute(command, received.timestamp)
            data = self._sign(result, received)
            self._recent[command.command_id] = data
            while len(self._recent) > _RECENT:
                self._recent.popitem(last=False)
        await self._stored.put(command.command_id, data)
        self._recent.pop(command.command_id, None)
        return data

    def _sign(self, result: pb.SandboxResult, received: Received[pb.SandboxCommand]) -> bytes:
        result.command_id = received.message.command_id
        result.ref.CopyFrom(received.message.ref)
        result.executor_id = self._executor_id
        result.partition = received.partition
        return result.SerializeToString(deterministic=True)


def _reply_topic(command: pb.SandboxCommand) -> Topic:
    topic = TOPICS.get(command.reply_topic)
    if topic is None or topic.message is not pb.SandboxResult:
        raise Reject("handler_error", f"reply_topic {command.reply_topic!r} does not carry results")
    if not command.command_id or "/" in command.command_id:
        raise Reject("handler_error", f"command_id {command.command_id!r}")
    return topic
