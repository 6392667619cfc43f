"""Message -> function: the two halves of a grading, either of which any replica may take.

Invariants: a request id has one result, stored before it is published, and answered again to a redelivery; no
state is kept between the halves but what rides in the command's context; every request is answered by its
deadline, with a verdict or with a typed failure, as long as the broker and the object store live.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import structlog

from sandpiper.bus.errors import Reject, Retry
from sandpiper.bus.message import Outgoing, Received
from sandpiper.clock import Clock
from sandpiper.ids import derived_id
from sandpiper.store.objects import ObjectStore
from sandpiper.store.results import ResultStore
from sandpiper.tasks.model import Task
from sandpiper.telemetry import metrics, tracing
from sandpiper.topics import GRADING_RESULTS, SANDBOX_COMMANDS
from sandpiper.v1.grading_pb2 import EpisodeGraded, GradeEpisode
from sandpiper.v1.sandbox_pb2 import ExecutorHeartbeat, Outcome, SandboxResult
from services.reward_grader import requests, results
from services.reward_grader.evidence import Evidence, NoVerdict, Subject, gather, nothing_to_grade
from services.reward_grader.reward import RewardError, reward
from services.reward_grader.tasks import Tasks

log = structlog.get_logger(__name__)


class Sender(Protocol):
    """What the grader needs of a producer."""

    async def send(self, out: Outgoing) -> None: ...


class Places(Protocol):
    """What the grader needs of the placement."""

    def observe(self, beat: ExecutorHeartbeat) -> None: ...
    def choose(self, affinity: int | None) -> int | None: ...


@dataclass(frozen=True)
class Grader:
    """Both halves."""

    tasks: Tasks
    objects: ObjectStore
    stored: ResultStore
    producer: Sender
    placement: Places
    clock: Clock
    nonce_key: bytes
    version: str

    async def heartbeat(self, received: Received[ExecutorHeartbeat]) -> None:
        """executor.heartbeats"""
        self.placement.observe(received.message)

    async def requested(self, received: Received[GradeEpisode]) -> None:
        """grading.requests: send the grading run to an executor, or answer at once."""
        request = received.message
        _check_id(request.request_id)
        if await self._answered(request):
            return
        context = requests.Context(request, received.timestamp)
        try:
            await self._place(context, received)
        except NoVerdict as error:
            await self._fail(context, error)

    async def executed(self, received: Received[SandboxResult]) -> None:
        """sandbox.results.reward-grader: evidence, reward, result."""
        try:
            context = requests.Context.unpack(received.message.context)
        except requests.BadContext as error:
            raise Reject("unparseable", f"context: {error}") from None
        _check_id(context.request.request_id)
        if await self._answered(context.request):
            return
        try:
            subject = self._subject(context.request, await self.tasks.get(context.request.task))
            with tracing.span("grading.judge", task=subject.task.id):
                key = requests.nonce(self.nonce_key, context.request.request_id)
                evidence = gather(subject, received.message, key)
            await self._pay(context, evidence, received.message.outcome)
        except NoVerdict as error:
            await self._fail(context, error)

    async def _place(self, context: requests.Context, received: Received[GradeEpisode]) -> None:
        request = context.request
        if request.deadline and self.clock.time() > request.deadline:
            raise NoVerdict("deadline", "expired", "the grading deadline passed before an executor was free")
        task = await self.tasks.get(request.task)
        if not requests.has_artifacts(task, request):
            evidence = nothing_to_grade(self._subject(request, task))
            await self._pay(context, evidence, Outcome.OUTCOME_UNSPECIFIED)
            return
        partition = self.placement.choose(None)
        if partition is None:
            raise Retry("no executor is alive")
        command = requests.grading_command(task, context, self.nonce_key)
        await self.producer.send(
            Outgoing(
                SANDBOX_COMMANDS,
                command,
                key=command.sandbox_id,
                partition=partition,
                message_id=derived_id("command", command.command_id, partition),
                causation_id=received.headers.message_id,
                deadline=request.deadline or None,
            )
        )

    async def _pay(self, context: requests.Context, evidence: Evidence, outcome: Outcome) -> None:
        try:
            earned = reward(evidence, evidence.reward_spec)
        except RewardError as error:
            raise NoVerdict("grading", "bad_reward", str(error)) from None
        record = evidence.model_dump_json().encode()
        blob = await self.objects.put_by_digest("evidence", record, ".json")
        seconds = self._seconds(context)
        metrics.GRADING_SECONDS.labels(evidence.verdict).observe(seconds)
        await self._answer(results.graded(context.request, evidence, blob, earned, outcome, seconds))

    async def _fail(self, context: requests.Context, error: NoVerdict) -> None:
        log.warning("grading.failed", request_id=context.request.request_id, reason=str(error)[:300])
        metrics.INFRA_FAILURES.labels(error.boundary, error.reason).inc()
        await self._answer(results.failed(context.request, error, self.version, self._seconds(context)))

    async def _answer(self, graded: EpisodeGraded) -> None:
        """Store, then publish."""
        await self.stored.put(graded.request_id, graded.SerializeToString(deterministic=True))
        await self._publish(graded)

    async def _answered(self, request: GradeEpisode) -> bool:
        """Publish the stored result of a request that was answered before."""
        data = await self.stored.get(request.request_id)
        if data is None:
            return False
        await self._publish(EpisodeGraded.FromString(data))
        return True

    async def _publish(self, graded: EpisodeGraded) -> None:
        await self.producer.send(
            Outgoing(
                GRADING_RESULTS,
                graded,
                key=graded.ref.episode_id or graded.request_id,
                message_id=derived_id("graded", graded.request_id),
            )
        )

    def _seconds(self, context: requests.Context) -> float:
        return max(0.0, self.clock.time() - context.started_at)

    def _subject(self, request: GradeEpisode, task: Task) -> Subject:
        return Subject(
            task=task,
            task_sha256=request.task.sha256,
            request_id=request.request_id,
            episode_id=request.ref.episode_id,
            attempt=request.ref.attempt,
            base_sha256=request.snapshot.sha256,
            grader_version=self.version,
        )


def _check_id(request_id: str) -> None:
    if not request_id or "/" in request_id:
        raise Reject("handler_error", f"request_id {request_id!r}")
