"""What the learner says: one function per event, each with an id that repeats when the event does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from sandpiper.bus.message import Outgoing
from sandpiper.ids import derived_id
from sandpiper.topics import POLICY_PUBLISHED, TRAINING_STEPS
from sandpiper.v1.common_pb2 import Blob, Failure
from sandpiper.v1.training_pb2 import PolicyPublished, TrainingStep

BOUNDARY = "learner"


class Sender(Protocol):
    """The part of `sandpiper.bus.producer.Producer` that is used here."""

    async def send(self, out: Outgoing) -> None:
        """Send and wait for the acknowledgement."""


class Events:
    """Sends to training.steps and policy.published. Raises BusUnavailable."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    async def policy(self, run_id: str, version: int, step: int, manifest: Blob, weights_sha256: str) -> None:
        """A version can be served."""
        message = PolicyPublished(
            run_id=run_id, version=version, manifest=manifest, weights_sha256=weights_sha256, step=step
        )
        message_id = derived_id("msg", "policy", run_id, version, manifest.sha256)
        await self._sender.send(Outgoing(POLICY_PUBLISHED, message, run_id, message_id=message_id))

    async def step(self, event: TrainingStep) -> None:
        """A step is committed and its policy published."""
        await self._send(event, derived_id("msg", "step", event.run_id, event.step))

    async def discarded(self, last: TrainingStep, group_ids: Iterable[str]) -> None:
        """Groups were discarded while no step could be taken: the last step's event again, with them added.

        Waiting for the next step to say so could wait for ever: the orchestrator counts a group as submitted
        until it hears of it, and may have no room for the groups that the next step needs.
        """
        ids = sorted(group_ids)
        event = TrainingStep()
        event.CopyFrom(last)
        event.discarded_group_ids.extend(ids)
        await self._send(event, derived_id("msg", "discarded", event.run_id, event.step, *ids))

    async def failed(self, run_id: str, step: int, reason: str, detail: str) -> None:
        """The learner gives the run up."""
        failure = Failure(boundary=BOUNDARY, reason=reason, detail=detail[:2000])
        event = TrainingStep(run_id=run_id, step=step, policy_version=step, failure=failure)
        await self._send(event, derived_id("msg", "failed", run_id, reason))

    async def _send(self, event: TrainingStep, message_id: str) -> None:
        await self._sender.send(Outgoing(TRAINING_STEPS, event, event.run_id, message_id=message_id))
