"""The state machine of one episode.

Invariants:
* every admitted episode reaches a terminal state exactly once (`states.LEGAL`; rows are locked);
* a result counts only for the attempt, turn and stage that asked for it; any other is recorded in the log and
  ignored;
* an infrastructure failure never becomes a reward: it starts a new attempt that continues from the last
  durable turn, or fails the episode;
* every change of state commits together with the message that it causes.
"""

from __future__ import annotations

import structlog
from sqlalchemy import select

from sandpiper.execution import outcome_name
from sandpiper.runs import RunDocument
from sandpiper.store.blobs import blob_to_json
from sandpiper.store.db.models import Attempt, Episode, PolicyVersion, Run, TaskRow, Turn
from sandpiper.telemetry import metrics
from sandpiper.topics import GRADING_REQUESTS, INFERENCE_REQUESTS, SANDBOX_COMMANDS, Topic
from sandpiper.v1 import common_pb2, grading_pb2, inference_pb2, sandbox_pb2

from . import requests
from .events import changed, finish, finished, parent_of
from .harness import HARNESSES, Action
from .harness.protocol import Message
from .records import graded_fields, storable, usage_to_json
from .states import EpisodeState
from .taskspec import TaskSpec
from .work import Work

log = structlog.get_logger(__name__)


class Episodes:
    """Moves one episode at a time, inside a transaction. Callers hold the episode's row lock."""

    def __init__(self, work: Work, run: Run, episode: Episode, task: TaskRow) -> None:
        self.work = work
        self.run = run
        self.episode = episode
        self.task_row = task
        self.task = TaskSpec.model_validate(task.spec)
        self.document = RunDocument.model_validate(run.document)
        self.harness = HARNESSES[self.task.harness]

    async def begin(self) -> None:
        """queued → generating, first attempt."""
        self._open_attempt()
        await self._request_turn(self.harness.opening(self.task))

    async def generated(self, result: inference_pb2.TurnGenerated) -> None:
        """A generation arrived: act on it, submit, or go to grading."""
        turn = await self._current_turn()
        self._record_generation(turn, result)
        if result.finish_reason == "context_limit":
            turn.action = Action("submit", note="context limit").to_json()
            return self._to_grading()
        action = self.harness.parse(self.task, storable(result.text))
        turn.action = action.to_json()
        if action.kind == "run":
            return self._request_run(action)
        if action.kind == "submit" or self._is_last_turn():
            turn.observation = action.note or None
            return self._to_grading()
        turn.observation = action.note
        return await self._next_turn(action.note)

    async def executed(self, result: sandbox_pb2.SandboxResult) -> None:
        """An execution arrived: show it to the policy, or go to grading."""
        turn = await self._current_turn()
        observation = self.harness.observe(self.task, result)
        shown = storable(observation.text)
        self._record_execution(turn, result, shown)
        if observation.done or self._is_last_turn():
            return self._to_grading()
        return await self._next_turn(shown)

    async def graded(self, result: grading_pb2.EpisodeGraded) -> None:
        """A verdict arrived."""
        for name, value in graded_fields(result).items():
            setattr(self.episode, name, value)
        attempt = await self._current_attempt()
        attempt.state, attempt.ended_at = "done", self.work.now
        self._change(EpisodeState.GRADED)
        if self.run.mode == "eval":
            finished(self.work, self.run, self.episode)

    async def retry(self, failure: common_pb2.Failure) -> bool:
        """An infrastructure failure: a new attempt from the last durable turn; False when none is left."""
        metrics.INFRA_FAILURES.labels(boundary=failure.boundary, reason=failure.reason).inc()
        attempt = await self._current_attempt()
        attempt.state, attempt.ended_at = "failed", self.work.now
        attempt.boundary, attempt.reason, attempt.detail = (
            failure.boundary,
            failure.reason,
            failure.detail[:2000],
        )
        if self.episode.attempt >= self.document.limits.max_attempts:
            self.finish(EpisodeState.FAILED, f"{failure.boundary}: {failure.reason}")
            return False
        await self._again()
        return True

    def finish(self, state: EpisodeState, reason: str | None) -> None:
        """Go to a terminal state."""
        finish(self.work, self.run, self.episode, state, reason)

    async def _again(self) -> None:
        previous = await self._current_turn()
        self.episode.attempt += 1
        self._open_attempt()
        stage = EpisodeState(self.episode.state)
        if stage is EpisodeState.GRADING:
            return self._to_grading()
        turn = requests.new_turn(self.episode, previous.messages, self.work.now)
        self.work.session.add(turn)
        if stage is EpisodeState.EXECUTING and previous.action is not None:
            _copy_generation(previous, turn)
            return self._request_run(Action.from_json(previous.action))
        self.episode.tokens = await self._tokens_before()
        return await self._send_generation(turn.messages)

    def _open_attempt(self) -> None:
        self.work.session.add(
            Attempt(
                episode_id=self.episode.id,
                number=self.episode.attempt,
                state="running",
                started_at=self.work.now,
            )
        )

    async def _next_turn(self, observation: str) -> None:
        self.episode.turn += 1
        await self._request_turn([{"role": "user", "content": observation}])

    async def _request_turn(self, messages: list[Message]) -> None:
        self.work.session.add(requests.new_turn(self.episode, messages, self.work.now))
        await self._send_generation(messages)

    async def _send_generation(self, messages: list[Message]) -> None:
        policy = await self._policy()
        request = requests.generate_turn(self.document, self.run, policy, self.episode, self.task, messages)
        self._change(EpisodeState.GENERATING, stage_s=self.document.deadlines.generation_s)
        self._owe(INFERENCE_REQUESTS, request)

    def _request_run(self, action: Action) -> None:
        command = requests.run_action(self.episode, self.task, action, self._is_last_turn())
        self._change(EpisodeState.EXECUTING, stage_s=self.document.deadlines.execution_s)
        self._owe(SANDBOX_COMMANDS, command, partition=self.episode.partition)

    def _to_grading(self) -> None:
        self._change(EpisodeState.GRADING, stage_s=self.document.deadlines.grading_s)
        request = requests.grade_episode(self.episode, self.task_row, self.episode.stage_deadline)
        self._owe(GRADING_REQUESTS, request)

    def _owe(
        self,
        topic: Topic,
        message: requests.Request,
        partition: int | None = None,
    ) -> None:
        self.work.owe(
            topic,
            self.episode.id,
            message,
            deadline=self.episode.stage_deadline,
            partition=partition,
            traceparent=parent_of(self.episode),
        )

    def _change(self, state: EpisodeState, reason: str | None = None, stage_s: float | None = None) -> None:
        changed(self.work, self.episode, state, reason)
        if stage_s is not None:
            self.episode.stage_deadline = min(self.work.now + stage_s, self.episode.deadline)

    def _is_last_turn(self) -> bool:
        return self.episode.turn + 1 >= requests.turn_limit(self.document, self.task)

    async def _policy(self) -> PolicyVersion:
        key = (self.run.policy_run_id, self.run.policy_version)
        return await self.work.session.get_one(PolicyVersion, key)

    async def _current_turn(self) -> Turn:
        key = (self.episode.id, self.episode.attempt, self.episode.turn)
        turn = await self.work.session.get(Turn, key)
        if turn is not None:
            return turn
        # A retry of grading opens an attempt without a turn of its own: the newest older one stands.
        query = select(Turn).where(Turn.episode_id == self.episode.id, Turn.number == self.episode.turn)
        return (await self.work.session.scalars(query.order_by(Turn.attempt.desc()).limit(1))).one()

    async def _current_attempt(self) -> Attempt:
        return await self.work.session.get_one(Attempt, (self.episode.id, self.episode.attempt))

    async def _tokens_before(self) -> dict[str, object] | None:
        """Tokens of the turn before the current one: the prefix that a repeated generation extends."""
        if self.episode.turn == 0:
            return None
        query = select(Turn.tokens).where(
            Turn.episode_id == self.episode.id,
            Turn.number == self.episode.turn - 1,
            Turn.tokens.is_not(None),
        )
        return (await self.work.session.scalars(query.order_by(Turn.attempt.desc()).limit(1))).one()

    def _record_generation(self, turn: Turn, result: inference_pb2.TurnGenerated) -> None:
        turn.text, turn.finish_reason, turn.engine = (
            storable(result.text),
            result.finish_reason,
            result.engine,
        )
        turn.prompt_tokens, turn.output_tokens = result.prompt_tokens, result.output_tokens
        turn.generated_at, turn.generate_s = self.work.now, result.generate_s
        turn.generate_queued_s = result.queued_s
        if not result.output_tokens:
            return
        turn.tokens = blob_to_json(result.tokens)
        turn.version_min, turn.version_max = result.version_min, result.version_max
        episode = self.episode
        episode.tokens = turn.tokens
        episode.output_tokens += result.output_tokens
        episode.version_min = min(result.version_min, _or(episode.version_min, result.version_min))
        episode.version_max = max(result.version_max, _or(episode.version_max, result.version_max))

    def _record_execution(self, turn: Turn, result: sandbox_pb2.SandboxResult, observation: str) -> None:
        turn.outcome, turn.exit_code = outcome_name(result.outcome), result.exit_code
        turn.usage, turn.observation = usage_to_json(result.usage), observation
        turn.log, turn.snapshot = blob_to_json(result.log), blob_to_json(result.snapshot)
        turn.executor_id, turn.executed_at = result.executor_id, self.work.now
        if result.snapshot.uri:
            self.episode.snapshot = turn.snapshot
        self.episode.partition, self.episode.executor_id = result.partition, result.executor_id


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


GENERATION_FIELDS = (
    "text",
    "finish_reason",
    "tokens",
    "prompt_tokens",
    "output_tokens",
    "version_min",
    "version_max",
    "engine",
    "action",
    "generated_at",
    "generate_s",
    "generate_queued_s",
)


def _copy_generation(source: Turn, target: Turn) -> None:
    for name in GENERATION_FIELDS:
        setattr(target, name, getattr(source, name))
