"""The process dies between any two writes, or loses its run: no trajectory is trained twice, none is
skipped."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiokafka.structs import TopicPartition

from sandpiper.runs import RunDocument
from sandpiper.store import policies
from sandpiper.topics import TRAJECTORIES
from sandpiper.v1.run_pb2 import ResumeRun
from sandpiper.v1.training_pb2 import TrainingStep, TrajectoryGroup
from services.learner.state.checkpoints import LEDGER, Checkpoints
from services.learner.state.control import Claim
from tests.unit.learner.learner_kit import (
    Bus,
    Crash,
    Learner,
    MemoryS3,
    document,
    put_group,
    running,
    store_of,
)

RUN = "run-1"
STEPS = 2
PER_STEP = 2


@dataclass
class World:
    """Everything that outlives a process. Dies at the `crash_at`-th write or send; 0 never."""

    folder: Path
    crash_at: int = 0
    s3: MemoryS3 = field(default_factory=MemoryS3)
    bus: Bus = field(default_factory=Bus)
    writes: int = 0
    dead: bool = False
    lives: int = 0
    created: bool = False
    committed: set[str] = field(default_factory=set)
    groups: list[list[TrajectoryGroup]] = field(default_factory=list)

    async def prepare(self) -> None:
        objects = store_of(self.s3)
        for step in range(STEPS):
            indices = range(step * PER_STEP, (step + 1) * PER_STEP)
            self.groups.append([await put_group(objects, RUN, index, version=step) for index in indices])
        await objects.close()
        self.s3.before_write = lambda key: self.tick()
        self.bus.before_send = lambda out: self.tick()

    def tick(self) -> None:
        if self.dead:
            raise Crash
        self.writes += 1
        if self.writes == self.crash_at:
            self.dead = True
            raise Crash

    async def live(self, run: RunDocument) -> bool:
        """One process, from its start to its crash or to the end of the work; True at the end."""
        self.lives += 1
        learner = Learner(self.folder, self.s3, self.bus)
        learner.start()
        try:
            if not self.created:
                await self._create(learner, run)
            for groups in self.groups:
                await self._deliver(learner, [g for g in groups if g.group_id not in self.committed])
                if self.dead:
                    return False
        except Crash:
            return False
        finally:
            await learner.kill()
            self.dead = False
        return True

    async def _create(self, learner: Learner, run: RunDocument) -> None:
        assert learner.work is not None
        creating = learner.waiting["create"] = asyncio.create_task(learner.create(RUN, run))
        await asyncio.wait({creating, learner.work}, timeout=60, return_when=asyncio.FIRST_COMPLETED)
        if self.dead:
            raise Crash
        await creating
        self.created = True

    async def _deliver(self, learner: Learner, groups: list[TrajectoryGroup]) -> None:
        """Redelivery as Kafka does it: what was not committed comes again."""
        tasks = {learner.deliver(group): group.group_id for group in groups}
        assert learner.work is not None
        waiting = set(tasks)
        async with asyncio.timeout(60):
            while waiting and not learner.work.done():
                _, waiting = await asyncio.wait({*waiting, learner.work}, return_when=asyncio.FIRST_COMPLETED)
                waiting.discard(learner.work)
                self.committed |= {
                    tasks[t] for t in tasks if t.done() and not t.cancelled() and t.exception() is None
                }
                if self.dead:
                    return

    def steps(self) -> dict[int, list[TrainingStep]]:
        found: dict[int, list[TrainingStep]] = {}
        for event in self.bus.steps():
            found.setdefault(event.step, []).append(event)
        return found


async def play(folder: Path, crash_at: int) -> World:
    world = World(folder, crash_at)
    await world.prepare()
    while not await world.live(document()):
        assert world.lives < 4
    return world


async def weights(world: World) -> list[str]:
    objects = store_of(world.s3)
    try:
        manifests = [
            await policies.load_manifest(objects, objects.uri(policies.manifest_key(RUN, version)))
            for version in range(STEPS + 1)
        ]
        state = await Checkpoints(objects).latest(RUN)
        assert state is not None
        tensors = [file.sha256 for name, file in sorted(state[0].files.items()) if name != LEDGER]
        return [m.weights_sha256 for m in manifests] + tensors
    finally:
        await objects.close()


@pytest.mark.timeout(900)
async def test_a_crash_between_any_two_writes_changes_nothing(learner_folder: Path) -> None:
    straight = await play(learner_folder, 0)
    expected = await weights(straight)
    assert straight.lives == 1
    assert straight.writes > 30
    for crash_at in range(1, straight.writes + 1):
        world = await play(learner_folder, crash_at)
        # How often it polls is not fixed: a run with a write less never comes to the last crash point.
        assert world.lives == 2 or world.writes < crash_at, crash_at
        steps = world.steps()
        assert sorted(steps) == [1, 2], crash_at
        for number, events in steps.items():
            first = straight.steps()[number][0]
            for event in events:
                assert list(event.episode_ids) == list(first.episode_ids), crash_at
                assert list(event.group_ids) == list(first.group_ids), crash_at
        trained = [episode for events in steps.values() for episode in events[0].episode_ids]
        assert len(trained) == len(set(trained)) == STEPS * PER_STEP * 2, crash_at
        assert {p.version for p in world.bus.policies()} == {0, 1, 2}, crash_at
        # Bit for bit what an uninterrupted run gives: weights, optimizer state, rng.
        assert await weights(world) == expected, crash_at


async def test_messages_are_not_committed_before_the_checkpoint(learner_folder: Path) -> None:
    """At every write up to the manifest of step 1 no message of step 1 may have been let go."""
    world = World(learner_folder)
    await world.prepare()
    learner = Learner(learner_folder, world.s3, world.bus)
    learner.start()
    await learner.create(RUN, document())
    seen: list[tuple[str, bool]] = []
    tasks = [learner.deliver(group) for group in world.groups[0]]
    world.s3.before_write = lambda key: seen.append((key, any(task.done() for task in tasks)))
    await asyncio.wait_for(asyncio.gather(*tasks), 60)
    await learner.stop()
    keys = [key for key, _ in seen]
    manifest = next(i for i, k in enumerate(keys) if k.startswith(f"checkpoints/{RUN}/1/manifest-000001-"))
    assert manifest > max(i for i, key in enumerate(keys) if key.endswith("weights.safetensors"))
    assert keys.index(f"policies/{RUN}/1/manifest.json") > manifest
    record = keys.index(f"checkpoints/{RUN}/steps/1.binpb")
    assert not any(done for _, done in seen[: record + 1])


async def test_a_learner_that_lost_its_run_commits_nothing(learner_folder: Path) -> None:
    """Two learners believe that the run is theirs; the later claim wins, the other finds out before it
    commits."""
    world = World(learner_folder)
    await world.prepare()
    async with running(learner_folder, world.s3, world.bus) as old:
        await old.create(RUN, document())
        first = [old.deliver(group) for group in world.groups[0]]
        await asyncio.wait_for(asyncio.gather(*first), 60)
        async with running(learner_folder, world.s3, world.bus) as new:
            # The partition went elsewhere, but `old` was not told: half of step 2 waits at each of them.
            parts = world.groups[1]
            at_new = [new.deliver(parts[0])]
            await asyncio.wait_for(_claimed(new), 30)
            old.handlers.assigned(frozenset({TopicPartition(TRAJECTORIES.name, 3)}))
            at_old = [old.deliver(group, partition=0) for group in parts]
            await asyncio.sleep(0.3)
            assert sorted(world.steps()) == [1]
            at_new.append(new.deliver(parts[1]))
            await asyncio.wait_for(asyncio.gather(*at_new), 60)
        assert not any(task.done() for task in at_old)  # committing them is not for `old` to do
        old.handlers.assigned(frozenset({TopicPartition(TRAJECTORIES.name, 0)}))
        await asyncio.wait_for(asyncio.gather(*at_old), 60)  # it reads what `new` committed
    assert {step: len({tuple(e.group_ids) for e in events}) for step, events in world.steps().items()} == {
        1: 1,
        2: 1,
    }


async def test_an_unnoticed_loss_is_found_before_the_commit(learner_folder: Path) -> None:
    world = World(learner_folder)
    await world.prepare()
    async with running(learner_folder, world.s3, world.bus) as old:
        await old.create(RUN, document())
        await asyncio.wait_for(asyncio.gather(*(old.deliver(g) for g in world.groups[0])), 60)
        # Someone else claims the run while nobody tells `old`.
        owner = f"checkpoints/{RUN}/owner.json"
        other = Claim(number=7, token="someone-else")
        stolen = {"times": 0}

        def steal(key: str) -> None:
            if key.endswith("weights.safetensors") and not stolen["times"]:
                stolen["times"] = 1
                world.s3.objects[owner] = other.model_dump_json().encode()

        world.s3.before_write = steal
        await asyncio.wait_for(asyncio.gather(*(old.deliver(g) for g in world.groups[1])), 60)
        assert stolen["times"] == 1
    # It lost the first attempt, claimed the run anew from the store, and trained step 2 once.
    assert {step: len(events) for step, events in world.steps().items() if step == 2} == {2: 1}
    latest = await Checkpoints(store_of(world.s3)).latest(RUN)
    assert latest is not None
    assert (latest[0].step, latest[0].claim) == (2, 8)


async def _claimed(learner: Learner) -> None:
    while learner.registry.slot(RUN).needs_refresh:
        await asyncio.sleep(0.01)


async def test_drain_leaves_waiting_messages_uncommitted(learner_folder: Path) -> None:
    world = World(learner_folder)
    await world.prepare()
    learner = Learner(learner_folder, world.s3, world.bus)
    learner.start()
    await learner.create(RUN, document())
    waits = learner.deliver(world.groups[0][0])
    await asyncio.sleep(0.1)
    await learner.scheduler.drain(5.0)
    await asyncio.wait({waits}, timeout=5)
    assert waits.cancelled()
    await learner.kill()


async def test_offsets_of_consumed_messages_are_in_the_manifest(learner_folder: Path) -> None:
    world = World(learner_folder)
    await world.prepare()
    async with running(learner_folder, world.s3, world.bus) as learner:
        await learner.create(RUN, document())
        run = learner.registry.slot(RUN)
        run.paused = True  # until all are there, or the step could take `early`
        early = learner.deliver(world.groups[1][0])  # lies before the others in the log, and goes on waiting
        tasks = [learner.deliver(group) for group in world.groups[0]]
        async with asyncio.timeout(60):
            while len(run.buffer) < 3:
                await asyncio.sleep(0.01)
            await learner.command(RUN, resume=ResumeRun())
            await asyncio.gather(*tasks)
        latest = await Checkpoints(learner.objects).latest(RUN)
        assert latest is not None
        (place,) = run.buffer.places()
        assert latest[0].offsets == {TRAJECTORIES.name: {0: place.offset}}
        assert not early.done()
