"""What the learner's tests share: an object store in memory, a bus that only records, tiny models, groups."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import math
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from sandpiper.bus.message import Headers, Outgoing, Received
from sandpiper.clock import SystemClock
from sandpiper.runs import RunDocument
from sandpiper.store.errors import MissingObject
from sandpiper.store.objects import ObjectSettings, ObjectStore
from sandpiper.topics import POLICY_PUBLISHED, RUN_COMMANDS, TRAINING_STEPS, TRAJECTORIES, Topic
from sandpiper.v1.common_pb2 import EpisodeRef
from sandpiper.v1.inference_pb2 import TurnTokens
from sandpiper.v1.run_pb2 import CreateRun, RunCommand
from sandpiper.v1.training_pb2 import PolicyPublished, TrainingStep, Trajectory, TrajectoryGroup
from services.learner.config import LearnerOptions
from services.learner.policy.sources import Sources
from services.learner.scratch import Scratch
from services.learner.training.sequences import TrainSequence
from services.learner.training.trainer import Placement, TakenGroup, Trainer
from services.learner.wiring import assemble
from services.learner.workshop import Workshop

BYTES = 260
CPU = Placement(torch.device("cpu"), None, 1 << 20)


class Crash(BaseException):
    """The process dies here. Not an Exception, so that nothing handles it."""


@dataclass
class MemoryS3:
    """Stands in for `sandpiper.store.s3.S3`. `before_write` sees every write before it happens."""

    objects: dict[str, bytes] = field(default_factory=dict)
    before_write: Callable[[str], None] = lambda key: None

    def ensure_bucket(self) -> None: ...

    def size(self, key: str) -> int | None:
        return len(self.objects[key]) if key in self.objects else None

    def put(self, key: str, data: bytes) -> None:
        self.before_write(key)
        self.objects[key] = bytes(data)

    def put_file(self, key: str, path: Path) -> str:
        self.put(key, path.read_bytes())
        return hashlib.sha256(self.objects[key]).hexdigest()

    def read(self, key: str) -> bytes:
        if key not in self.objects:
            raise MissingObject(key)
        return self.objects[key]

    def read_to_file(self, key: str, path: Path, sha256: str) -> None:
        data = self.read(key)
        assert not sha256 or hashlib.sha256(data).hexdigest() == sha256
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def list(self, prefix: str) -> list[str]:
        return sorted(key for key in list(self.objects) if key.startswith(prefix))

    def delete(self, key: str) -> None:
        self.before_write(f"delete {key}")
        self.objects.pop(key, None)

    def close(self) -> None: ...


def store_of(s3: MemoryS3) -> ObjectStore:
    """The real ObjectStore on top of `s3`."""
    store = ObjectStore(ObjectSettings(deadline_s=1.5, connections=4))
    store._s3 = s3  # type: ignore[assignment]
    return store


@dataclass
class Bus:
    """Records what is sent; `before_send` may fail it."""

    sent: list[Outgoing] = field(default_factory=list)
    before_send: Callable[[Outgoing], None] = lambda out: None

    async def send(self, out: Outgoing) -> None:
        self.before_send(out)
        out.encode()
        self.sent.append(out)

    def steps(self) -> list[TrainingStep]:
        return [out.message for out in self.sent if out.topic is TRAINING_STEPS]  # type: ignore[misc]

    def policies(self) -> list[PolicyPublished]:
        return [out.message for out in self.sent if out.topic is POLICY_PUBLISHED]  # type: ignore[misc]


def document(**algorithm: Any) -> RunDocument:
    """A tiny training run: 2 groups of 2 per step, fp32, unless told otherwise."""
    settings = {"group_size": 2, "groups_per_step": 2, "learning_rate": 1e-2, "dtype": "fp32"} | algorithm
    return RunDocument.model_validate(
        {
            "policy": {"kind": "tiny"},
            "tasks": {"task_set": "toy"},
            "algorithm": settings,
            "budget": {"steps": 1000},
        }
    )


def small_model(seed: int = 0, tied: bool = False) -> Any:
    """A Llama that is small enough to check every number of."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=BYTES,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=512,
        tie_word_embeddings=tied,
        initializer_range=0.2,
        pad_token_id=None,
    )
    return LlamaForCausalLM(config)


def trainer(run: RunDocument | None = None, seed: int = 0) -> Trainer:
    return Trainer(small_model(seed), run or document(), CPU)


def sequence(
    name: str, prompt: Sequence[int], output: Sequence[int], reward: float = 0.0, version: int = 0
) -> TrainSequence:
    """A single-turn sequence whose behaviour is that of a uniform policy."""
    ids = np.array([*prompt, *output], dtype=np.int64)
    return TrainSequence(
        episode_id=name,
        ids=ids,
        targets=np.arange(len(prompt), len(ids), dtype=np.int64),
        behaviour=np.full(len(output), -math.log(BYTES), dtype=np.float32),
        versions=np.full(len(output), version, dtype=np.int64),
        reward=reward,
        passed=reward > 0,
    )


def taken(*sequences: TrainSequence) -> TakenGroup:
    return TakenGroup(sequences, frozenset(s.episode_id for s in sequences))


def random_group(
    rng: random.Random, name: str, size: int = 4, prompt: int = 12, output: int = 9
) -> TakenGroup:
    """A group with a common prompt, outputs of different lengths and different rewards."""
    shared = [rng.randrange(BYTES) for _ in range(prompt)]
    members = []
    for number in range(size):
        out = [rng.randrange(BYTES) for _ in range(rng.randint(1, output))]
        members.append(
            sequence(f"{name}-{number}", shared, out, reward=rng.choice([-0.5, -0.1, 1.0]) + number / 100)
        )
    return taken(*members)


def never() -> bool:
    return False


async def put_group(
    objects: ObjectStore,
    run_id: str,
    index: int,
    version: int = 0,
    rewards: Sequence[float] = (1.0, -0.1),
    name: str | None = None,
) -> TrajectoryGroup:
    """A closed group as the orchestrator sends it: single turns, the same prompt, an output per reward."""
    name = name or f"{run_id}-g{index}"
    group = TrajectoryGroup(run_id=run_id, group_id=name, task_id="t", group_index=index)
    for number, reward in enumerate(rewards):
        episode = f"{name}-e{number}"
        turn = TurnTokens(
            prompt_ids=[10 + index % 7, 11, 12, 13],
            output_ids=[40 + number, 41, 3],
            logprobs=[-2.0, -3.0, -1.5],
            versions=[version] * 3,
            policy_run_id=run_id,
        )
        blob = await objects.put(f"tokens/{episode}/0", turn.SerializeToString())
        trace = (
            f"00-{hashlib.md5(episode.encode()).hexdigest()}-{hashlib.md5(name.encode()).hexdigest()[:16]}-01"
        )
        group.trajectories.append(
            Trajectory(
                ref=EpisodeRef(run_id=run_id, group_id=name, episode_id=episode, attempt=1),
                tokens=blob,
                turns=[blob],
                reward=reward,
                passed=reward > 0,
                version_min=version,
                version_max=version,
                trace_parent=trace,
            )
        )
    return group


_offsets = itertools.count()


def received(topic: Topic, message: Any, key: str, partition: int = 0) -> Received[Any]:
    return Received(topic, message, Headers("id"), key, partition, next(_offsets), 0.0)


class Learner:
    """A learner process without its bus: handlers, scheduler, and a store that outlives it."""

    def __init__(self, folder: Path, s3: MemoryS3, bus: Bus, **options: Any) -> None:
        self.bus = bus
        self.s3 = s3
        self.objects = store_of(s3)
        self.scratch = Scratch(folder / "scratch")
        chosen = LearnerOptions(device="cpu", threads=1, retry_first_s=0.01, poll_s=0.05, **options)
        self.workshop = Workshop(chosen)
        sources = Sources(self.objects, folder / "models")
        self.scheduler, self.handlers = assemble(
            chosen, self.objects, bus, self.scratch, self.workshop, sources, SystemClock()
        )
        self.registry = self.handlers._registry
        self.work: asyncio.Task[None] | None = None
        self.waiting: dict[str, asyncio.Task[None]] = {}

    def start(self) -> None:
        self.work = asyncio.create_task(self.scheduler.run())

    async def create(self, run_id: str, run: RunDocument) -> None:
        await self.command(run_id, create=CreateRun(document_json=run.model_dump_json()))

    async def command(self, run_id: str, **command: Any) -> None:
        message = RunCommand(run_id=run_id, **command)
        await self.handlers.command(received(RUN_COMMANDS, message, run_id))

    def deliver(self, group: TrajectoryGroup, partition: int = 0) -> asyncio.Task[None]:
        """Hand a group in; the task ends when its message may be committed."""
        message = received(TRAJECTORIES, group, group.run_id, partition)
        task = asyncio.create_task(self.handlers.trajectories(message))
        self.waiting[group.group_id] = task
        return task

    async def stop(self) -> None:
        """An orderly end."""
        await self.scheduler.drain(20.0)
        await self.kill()

    async def kill(self) -> None:
        """As kill -9 looks from outside: nothing more is written or sent."""
        tasks = [task for task in (self.work, *self.waiting.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.workshop.close()
        self.scratch.close()
        await self.objects.close()


@asynccontextmanager
async def running(folder: Path, s3: MemoryS3, bus: Bus, **options: Any) -> AsyncIterator[Learner]:
    learner = Learner(folder, s3, bus, **options)
    learner.start()
    try:
        yield learner
    finally:
        await learner.stop()
