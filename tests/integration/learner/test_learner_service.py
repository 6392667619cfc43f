"""The learner as a process, on each broker and a real S3: it learns, and kill -9 at any time changes
nothing."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForCausalLM

from sandpiper.bus.admin import ensure_topics
from sandpiper.bus.consumer import Consumer
from sandpiper.bus.message import Outgoing, Received
from sandpiper.bus.producer import Producer
from sandpiper.bus.settings import BusSettings
from sandpiper.store import policies
from sandpiper.store.objects import ObjectStore
from sandpiper.topics import POLICY_PUBLISHED, RUN_COMMANDS, TRAINING_STEPS, TRAJECTORIES
from sandpiper.v1.run_pb2 import CreateRun, FinishRun, RunCommand
from sandpiper.v1.training_pb2 import PolicyPublished, TrainingStep
from tests.integration.brokers import Broker
from tests.stack import RunningStack
from tests.unit.learner.learner_kit import document, put_group

REPOSITORY = Path(__file__).resolve().parents[3]
PATIENCE_S = 120.0


class Service:
    """`python -m services.learner`, which may be killed."""

    def __init__(self, infra: RunningStack, bus: BusSettings, folder: Path) -> None:
        objects = infra.objects
        self._log = folder / "log"
        self._environment = {
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'libs'}",
            "SANDPIPER_BUS__BOOTSTRAP": bus.bootstrap,
            "SANDPIPER_BUS__BROKER": bus.broker,
            "SANDPIPER_BUS__SESSION_TIMEOUT_MS": str(bus.session_ms),
            "SANDPIPER_OBJECTS__ENDPOINT": objects.endpoint,
            "SANDPIPER_OBJECTS__ACCESS_KEY": objects.access_key,
            "SANDPIPER_OBJECTS__SECRET_KEY": objects.secret_key.get_secret_value(),
            "SANDPIPER_OBJECTS__BUCKET": objects.bucket,
            "SANDPIPER_DATA_DIR": str(folder),
            "SANDPIPER_LEARNER__THREADS": "1",
            "SANDPIPER_DRAIN_S": "5",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "services.learner"],
                env=self._environment,
                cwd=self._log.parent,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    async def terminate(self) -> int:
        """SIGTERM; the exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = await asyncio.wait_for(asyncio.to_thread(self._process.wait), 40)
        self._process = None
        return code

    @property
    def log(self) -> str:
        return self._log.read_text()


class World:
    """What the rest of the system sees of the learner."""

    def __init__(self, run_id: str, producer: Producer, objects: ObjectStore) -> None:
        self.run_id = run_id
        self.objects = objects
        self.steps: list[TrainingStep] = []
        self.policies: list[PolicyPublished] = []
        self._producer = producer

    async def note(self, received: Received[Any]) -> None:
        if received.message.run_id == self.run_id:
            kept: list[Any] = self.steps if received.topic is TRAINING_STEPS else self.policies
            kept.append(received.message)

    async def command(self, **command: Any) -> None:
        message = RunCommand(run_id=self.run_id, **command)
        await self._producer.send(Outgoing(RUN_COMMANDS, message, self.run_id))

    async def send_groups(self, first: int, count: int, version: int) -> None:
        for index in range(first, first + count):
            group = await put_group(self.objects, self.run_id, index, version)
            await self._producer.send(Outgoing(TRAJECTORIES, group, self.run_id))

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.05)

    def done(self, step: int) -> bool:
        return any(event.step == step for event in self.steps)


@pytest.fixture
async def world(own_broker: Broker, objects: ObjectStore) -> AsyncIterator[World]:
    await ensure_topics(own_broker.settings)
    async with _producing(own_broker.settings, objects) as producer:
        made = World(f"run-{uuid.uuid4().hex[:10]}", producer, objects)
        handlers = {TRAINING_STEPS: made.note, POLICY_PUBLISHED: made.note}
        consumer = Consumer(
            own_broker.settings, None, handlers, producer, objects, client_id="test", broadcast=True
        )
        task = asyncio.create_task(consumer.run())
        await made.until(lambda: consumer.connected)
        yield made
        await consumer.stop(2.0)
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def _producing(bus: BusSettings, objects: ObjectStore) -> AsyncIterator[Producer]:
    producer = Producer(bus, objects)
    await producer.start()
    yield producer
    await producer.stop()


@pytest.fixture
def service(infra: RunningStack, own_broker: Broker, tmp_path: Path) -> Any:
    made = Service(infra, own_broker.settings, tmp_path)
    yield made
    made.kill()


async def test_a_run_from_creation_to_its_end(service: Service, world: World, tmp_path: Path) -> None:
    service.start()
    await world.command(create=CreateRun(document_json=document().model_dump_json()))
    await world.until(lambda: world.policies)
    for step in (1, 2):
        await world.send_groups(2 * step, 2, version=step - 1)
        await world.until(lambda step=step: world.done(step))  # type: ignore[misc]
    assert [p.version for p in world.policies] == [0, 1, 2]
    await policies.fetch(world.objects, world.policies[-1].manifest, tmp_path / "policy")
    AutoModelForCausalLM.from_pretrained(tmp_path / "policy")
    await world.command(finish=FinishRun(state="succeeded"))
    await world.until(lambda: "run_let_go" in service.log)
    assert await service.terminate() == 0
    assert [event.step for event in world.steps] == [1, 2]
    assert not list((tmp_path / "learner" / "scratch").iterdir())


@pytest.mark.timeout(600)
async def test_kill_9_at_random_times_trains_everything_once(service: Service, world: World) -> None:
    rng = random.Random(7)
    service.start()
    await world.command(create=CreateRun(document_json=document().model_dump_json()))
    await world.until(lambda: world.policies)
    for step in (1, 2, 3):
        await world.send_groups(2 * step, 2, version=step - 1)
        await asyncio.sleep(rng.uniform(0.0, 0.6))
        service.kill()
        service.start()
        await world.until(lambda step=step: world.done(step))  # type: ignore[misc]
    episodes = {event.step: tuple(event.episode_ids) for event in world.steps}
    assert {event.step: tuple(event.episode_ids) for event in reversed(world.steps)} == episodes
    trained = [episode for step in (1, 2, 3) for episode in episodes[step]]
    assert len(trained) == len(set(trained)) == 12
    versions = {p.version: p.weights_sha256 for p in world.policies}
    assert all(versions[p.version] == p.weights_sha256 for p in world.policies)
    assert sorted(versions) == [0, 1, 2, 3]


async def test_sigterm_while_groups_wait_ends_soon_and_commits_none(service: Service, world: World) -> None:
    service.start()
    await world.command(create=CreateRun(document_json=document().model_dump_json()))
    await world.until(lambda: world.policies)
    await world.send_groups(0, 1, version=0)
    await asyncio.sleep(1.0)
    assert await service.terminate() == 0
    service.start()
    await world.send_groups(1, 1, version=0)
    await world.until(lambda: world.done(1))
    assert len(world.steps[0].group_ids) == 2
