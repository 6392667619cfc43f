"""The other services, played by a random, faulty script; the orchestrator and its Postgres are real."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message
from sqlalchemy import select, update

from sandpiper.bus.message import Headers, Received
from sandpiper.bus.outbox import OutboxRelay
from sandpiper.ids import new_id
from sandpiper.runs import RunDocument
from sandpiper.store.db.engine import Sessions
from sandpiper.store.db.models import Episode, Group, OutboxRow, Run, StepEpisode, TaskRow, TaskSet, Turn
from sandpiper.tasks.model import Task
from sandpiper.topics import (
    EPISODE_EVENTS,
    GRADING_REQUESTS,
    GRADING_RESULTS,
    INFERENCE_REQUESTS,
    INFERENCE_RESULTS,
    POLICY_PUBLISHED,
    RUN_COMMANDS,
    SANDBOX_COMMANDS,
    SANDBOX_RESULTS,
    TOPICS,
    TRAINING_STEPS,
    TRAJECTORIES,
    Topic,
)
from sandpiper.v1 import common_pb2, grading_pb2, inference_pb2, run_pb2, sandbox_pb2, training_pb2
from services.rollout_orchestrator.handlers import Handlers
from services.rollout_orchestrator.sweeper import Sweeper
from services.rollout_orchestrator.taskspec import TaskSpec

FAILURE = common_pb2.Failure(boundary="sandbox", reason="engine_gone")


class ManualClock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


def blob(key: str) -> common_pb2.Blob:
    return common_pb2.Blob(uri=f"s3://sandpiper/{key}", sha256="0" * 64, bytes=1)


@dataclass
class World:
    """Plays inference, executor, grader and learner."""

    sessions: Sessions
    seed: int
    faults: float
    clock: ManualClock = field(default_factory=ManualClock)
    offset: int = 0
    steps: int = 0
    pending: dict[str, training_pb2.TrajectoryGroup] = field(default_factory=dict)
    consumed: set[str] = field(default_factory=set)
    reward: float | None = None
    """Every verdict, where it is not random."""
    terminal_events: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.handlers = Handlers(self.sessions, objects=None, clock=self.clock, committed=lambda: None)  # type: ignore[arg-type]
        relay = OutboxRelay(self.sessions, producer=None, placer=None, clock=self.clock)  # type: ignore[arg-type]
        self.sweeper = Sweeper(self.handlers.work, relay, self.clock, every_s=1, resend_s=60)

    def received(self, topic: Topic, message: Message) -> Received[Any]:
        self.offset += 1
        return Received(topic, message, Headers(new_id("msg")), "k", 0, self.offset, self.clock.now)

    async def deliver(self, topic: Topic, message: Message) -> None:
        """At least once: sometimes twice, with the same or with a new message id."""
        first = self.received(topic, message)
        batch = [first]
        if self.random.random() < self.faults:
            batch.append(self.random.choice([first, self.received(topic, message)]))
        if topic in (INFERENCE_RESULTS, SANDBOX_RESULTS, GRADING_RESULTS):
            await self.handlers.results(batch)
        else:
            await self.handlers.control(batch)

    async def outbox(self) -> list[tuple[Topic, Message]]:
        async with self.sessions.begin() as session:
            rows = (
                await session.scalars(
                    select(OutboxRow).where(OutboxRow.published_at.is_(None)).order_by(OutboxRow.id)
                )
            ).all()
            await session.execute(
                update(OutboxRow).where(OutboxRow.id.in_([r.id for r in rows])).values(published_at=1.0)
            )
            return [(TOPICS[r.topic], TOPICS[r.topic].message.FromString(r.payload)) for r in rows]

    async def turn_the_crank(self) -> bool:
        """One round: admit, sweep, and let everybody answer what was published. False when idle."""
        await self.sweeper.admit_all()
        await self.sweeper.sweep()
        published = await self.outbox()
        self.random.shuffle(published)
        for topic, message in published:
            if topic not in (EPISODE_EVENTS, RUN_COMMANDS) and self.random.random() < self.faults / 4:
                continue  # lost with the broker
            await self.answer(topic, message)
        await self.train()
        self.clock.now += self.random.choice([0.1, 1.0, 20.0])
        return bool(published)

    async def answer(self, topic: Topic, message: Any) -> None:
        fails = self.random.random() < self.faults
        if topic is INFERENCE_REQUESTS:
            await self.deliver(INFERENCE_RESULTS, self.generation(message, fails))
        elif topic is SANDBOX_COMMANDS:
            await self.deliver(SANDBOX_RESULTS, self.execution(message, fails))
        elif topic is GRADING_REQUESTS:
            await self.deliver(GRADING_RESULTS, self.verdict(message, fails))
        elif topic is TRAJECTORIES and message.group_id not in self.consumed:
            self.pending[message.group_id] = message
        elif topic is EPISODE_EVENTS and message.state in ("trained", "discarded", "failed"):
            self.terminal_events[message.ref.episode_id] += 1

    def generation(self, request: Any, fails: bool) -> inference_pb2.TurnGenerated:
        if fails:
            return inference_pb2.TurnGenerated(ref=request.ref, finish_reason="failed", failure=FAILURE)
        text = self.random.choice(["```python\nx = 1\n```", "no block", "```python\nx = '\0'\n```"])
        key = f"{request.ref.episode_id}/{request.ref.attempt}/{request.ref.turn}"
        return inference_pb2.TurnGenerated(
            ref=request.ref,
            text=text,
            finish_reason="stop",
            tokens=blob(key),
            output_tokens=3,
            prompt_tokens=5,
            version_min=request.policy.version,
            version_max=request.policy.version,
            engine="stub",
        )

    def execution(self, command: Any, fails: bool) -> sandbox_pb2.SandboxResult:
        outcome = sandbox_pb2.OUTCOME_INFRA_ERROR if fails else self.random.choice([1, 2, 4])
        return sandbox_pb2.SandboxResult(
            ref=command.ref,
            command_id=command.command_id,
            outcome=outcome,
            snapshot=blob(command.command_id),
            stdout=b"assert '\0\xff' == 1",
            failure=FAILURE if fails else None,
            executor_id="x",
        )

    def verdict(self, request: Any, fails: bool) -> grading_pb2.EpisodeGraded:
        if fails:
            return grading_pb2.EpisodeGraded(ref=request.ref, has_reward=False, failure=FAILURE)
        if self.reward is not None:
            return grading_pb2.EpisodeGraded(ref=request.ref, has_reward=True, reward=self.reward)
        passed = self.random.random() < 0.4
        return grading_pb2.EpisodeGraded(
            ref=request.ref, has_reward=True, reward=1.0 if passed else -0.1, passed=passed
        )

    async def train(self) -> None:
        while len(self.pending) >= 2:
            taken = sorted(self.pending.values(), key=lambda g: g.group_index)[:2]
            for group in taken:
                del self.pending[group.group_id]
                self.consumed.add(group.group_id)
            self.steps += 1
            run_id = taken[0].run_id
            await self.publish(run_id, self.steps)
            step = training_pb2.TrainingStep(
                run_id=run_id,
                step=self.steps,
                policy_version=self.steps,
                group_ids=[g.group_id for g in taken],
                episode_ids=[t.ref.episode_id for g in taken for t in g.trajectories],
            )
            await self.deliver(TRAINING_STEPS, step)

    async def publish(self, run_id: str, version: int) -> None:
        message = training_pb2.PolicyPublished(
            run_id=run_id,
            version=version,
            manifest=blob(f"policy-{version}"),
            weights_sha256="0",
            step=version,
        )
        await self.deliver(POLICY_PUBLISHED, message)


def task(number: int) -> Task:
    return Task.model_validate(
        {
            "id": f"t{number}",
            "family": "f",
            "language": "python",
            "instruction": "i",
            "workspace": {},
            "solution_path": "solution.py",
            "visible": {"runner": "asserts", "files": {"test_visible.py": ""}},
            "hidden": {"runner": "asserts", "files": {"test_hidden.py": ""}},
            "reference": {"solution.py": ""},
        }
    )


async def start_run(world: World, **changes: Any) -> str:
    async with world.sessions.begin() as session:
        session.add(
            TaskSet(
                id="ts", name="n", version="1", tasks_blob={}, task_count=3, submitted_by="me", created_at=0.0
            )
        )
        await session.flush()
        for position in range(3):
            item = task(position)
            session.add(
                TaskRow(
                    task_set_id="ts",
                    position=position,
                    id=item.id,
                    family="f",
                    split="train",
                    language="python",
                    blob={},
                    spec=TaskSpec.of(item).to_json(),
                )
            )
    document = {
        "tasks": {"task_set": "ts"},
        "algorithm": {"group_size": 4, "groups_per_step": 2},
        "budget": {"steps": 3},
        "deadlines": {"episode_s": 10_000, "group_s": 10_000},
    } | changes
    run_id = new_id("run")
    create = run_pb2.CreateRun(document_json=RunDocument.model_validate(document).model_dump_json())
    await world.deliver(RUN_COMMANDS, run_pb2.RunCommand(run_id=run_id, create=create))
    await world.publish(run_id, 0)
    return run_id


async def finish(world: World, run_id: str) -> Run:
    for _ in range(3000):
        await world.turn_the_crank()
        async with world.sessions() as session:
            run = await session.get_one(Run, run_id)
        if run.finished_at is not None:
            await world.turn_the_crank()
            return run
    raise AssertionError("the run does not end")


async def check_promises(world: World, run_id: str) -> None:
    async with world.sessions() as session:
        episodes = (await session.scalars(select(Episode).where(Episode.run_id == run_id))).all()
        groups = (await session.scalars(select(Group).where(Group.run_id == run_id))).all()
        trained = Counter((await session.scalars(select(StepEpisode.episode_id))).all())
        turns = (await session.scalars(select(Turn))).all()
    assert {e.state for e in episodes} <= {"trained", "discarded", "failed"}
    assert all(world.terminal_events[e.id] == 1 for e in episodes)
    assert all(count == 1 for count in trained.values())
    assert set(trained) == {e.id for e in episodes if e.state == "trained"}
    assert all(e.reward is not None for e in episodes if e.state == "trained")
    assert all(e.reward is None for e in episodes if e.state == "failed")
    assert {g.state for g in groups} <= {"trained", "discarded"}
    assert len({(t.episode_id, t.attempt, t.number) for t in turns}) == len(turns)
