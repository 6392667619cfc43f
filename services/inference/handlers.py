"""Messages to functions.

inference.requests -> Handlers.generate ; policy.published -> Handlers.published
"""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

import structlog

from sandpiper.bus.consumer import Handler
from sandpiper.bus.errors import Reject
from sandpiper.bus.message import Outgoing, Received
from sandpiper.bus.producer import Producer
from sandpiper.clock import Clock
from sandpiper.store.results import ResultStore
from sandpiper.topics import INFERENCE_REQUESTS, INFERENCE_RESULTS, POLICY_PUBLISHED, Topic
from sandpiper.v1.inference_pb2 import GenerateTurn, TurnGenerated
from sandpiper.v1.training_pb2 import PolicyPublished
from services.inference.policies.registry import Published
from services.inference.policies.scheduler import Scheduler
from services.inference.turns import Turns

log = structlog.get_logger(__name__)


class Handlers:
    """Idempotent by `request_id`: a turn that was generated once is answered from the store ever after.

    Failures are not stored, so a request that is sent again gets another chance.
    """

    def __init__(
        self,
        turns: Turns,
        scheduler: Scheduler,
        results: ResultStore,
        producer: Producer,
        clock: Clock,
        turn_s: float,
    ) -> None:
        self._turns = turns
        self._scheduler = scheduler
        self._results = results
        self._producer = producer
        self._clock = clock
        self._turn_s = turn_s
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def requests(self) -> dict[Topic, Handler]:
        """For the consumer group."""
        return {INFERENCE_REQUESTS: self.generate}

    def broadcasts(self) -> dict[Topic, Handler]:
        """For the consumer that reads everything from the beginning."""
        return {POLICY_PUBLISHED: self.published}

    async def generate(self, received: Received[GenerateTurn]) -> None:
        """Answer one request, exactly one result per delivery."""
        request = received.message
        if not request.request_id or not request.ref.episode_id:
            raise Reject("handler_error", "request_id and ref.episode_id are required")
        lock = self._locks.setdefault(request.request_id, asyncio.Lock())
        async with lock:
            result = await self._result(received)
        await self._producer.send(
            Outgoing(
                topic=INFERENCE_RESULTS,
                message=result,
                key=request.ref.episode_id,
                causation_id=received.headers.message_id,
                deadline=received.headers.deadline,
            )
        )

    async def published(self, received: Received[PolicyPublished]) -> None:
        """A policy version is out."""
        message = received.message
        if not message.manifest.uri:
            raise Reject("handler_error", "policy.published names no manifest")
        self._scheduler.published(Published.of(message.run_id, message.version, message.manifest))

    async def _result(self, received: Received[GenerateTurn]) -> TurnGenerated:
        request = received.message
        stored = await self._results.get(request.request_id)
        if stored is not None:
            log.info("turn_answered_from_store", request_id=request.request_id)
            return TurnGenerated.FromString(stored)
        deadline = received.headers.deadline or self._clock.time() + self._turn_s
        result = await self._turns.run(request, deadline)
        if not result.HasField("failure"):
            await self._results.put(request.request_id, result.SerializeToString())
        return result
