"""Runs from their creation to their end, on a store in memory: what is trained, discarded, said, and let
go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from sandpiper.bus.errors import BusUnavailable, Reject
from sandpiper.bus.message import Outgoing
from sandpiper.runs import RunDocument
from sandpiper.store import policies
from sandpiper.store.errors import StoreUnavailable
from sandpiper.topics import RUN_COMMANDS, TRAINING_STEPS
from sandpiper.v1.run_pb2 import CancelRun, CreateRun, FinishRun, PauseRun, ResumeRun, RunCommand
from services.learner.training.trainer import StepRefused, Trainer
from tests.unit.learner.learner_kit import (
    Bus,
    Learner,
    MemoryS3,
    document,
    put_group,
    received,
    running,
)

RUN = "run-1"


@pytest.fixture
def s3() -> MemoryS3:
    return MemoryS3()


@pytest.fixture
def bus() -> Bus:
    return Bus()


async def until(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def train(learner: Learner, first: int, count: int = 2, version: int = 0, run_id: str = RUN) -> None:
    """Deliver groups `first`… and wait until their messages may be committed."""
    tasks = [
        learner.deliver(await put_group(learner.objects, run_id, index, version))
        for index in range(first, first + count)
    ]
    async with asyncio.timeout(60):
        await asyncio.gather(*tasks)


async def test_create_publishes_version_0_and_says_so(learner_folder: Path, s3: MemoryS3, bus: Bus) -> None:
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document())
        assert [(p.run_id, p.version, p.step) for p in bus.policies()] == [(RUN, 0, 0)]
        manifest = await policies.load_manifest(learner.objects, bus.policies()[0].manifest)
    assert manifest.base == "tiny:0"
    assert manifest.weights_sha256 == bus.policies()[0].weights_sha256
    assert len(manifest.probe.logprobs) == len(manifest.probe.prompt_ids) - 1 > 8
    assert {"config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"} <= set(
        manifest.files
    )


async def test_an_evaluation_with_its_own_base_gets_version_0_too(
    learner_folder: Path, s3: MemoryS3, bus: Bus
) -> None:
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document().model_copy(update={"mode": "eval"}))
    assert [p.version for p in bus.policies()] == [0]


async def test_an_evaluation_of_another_runs_policy_publishes_nothing(
    learner_folder: Path, s3: MemoryS3, bus: Bus
) -> None:
    run = RunDocument.model_validate(
        {"mode": "eval", "policy": {"kind": "run", "run_id": "other"}, "tasks": {"task_set": "toy"}}
    )
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, run)
        await learner.command(RUN, finish=FinishRun(state="succeeded"))
    assert not bus.sent
    assert not s3.objects


async def test_training_can_start_from_another_runs_policy(
    learner_folder: Path, s3: MemoryS3, bus: Bus
) -> None:
    async with running(learner_folder, s3, bus) as learner:
        await learner.create("first", document())
        await train(learner, 0, run_id="first")
        for name, version in (("newest", None), ("pinned", 0)):
            policy = {"kind": "run", "run_id": "first", "version": version}
            await learner.create(
                name, RunDocument.model_validate(document().model_dump() | {"policy": policy})
            )
    weights = {(p.run_id, p.version): p.weights_sha256 for p in bus.policies()}
    assert weights["newest", 0] == weights["first", 1] != weights["first", 0] == weights["pinned", 0]


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ({"kind": "path", "path": "/nowhere"}, "policy_not_found"),
        ({"kind": "run", "run_id": "none"}, "policy_not_found"),
    ],
)
async def test_a_policy_that_is_not_there_fails_the_run(
    learner_folder: Path, s3: MemoryS3, bus: Bus, policy: dict[str, str], reason: str
) -> None:
    run = RunDocument.model_validate(document().model_dump() | {"policy": policy})
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, run)
        await learner.create(RUN, run)  # a redelivery says nothing else
        await train(learner, 0)  # and its groups are let go
    assert {step.failure.reason for step in bus.steps()} == {reason}
    assert not bus.policies()


async def test_a_step_commits_publishes_and_reports(learner_folder: Path, s3: MemoryS3, bus: Bus) -> None:
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document())
        await train(learner, 0)
        await train(learner, 2, version=1)
        events = bus.steps()
        assert [(e.step, e.policy_version) for e in events] == [(1, 1), (2, 2)]
        assert list(events[0].group_ids) == [f"{RUN}-g0", f"{RUN}-g1"]
        assert len(events[0].episode_ids) == 4
        assert events[0].metrics["reward_mean"] == pytest.approx(0.45)
        for name in (
            "fetch_s",
            "train_s",
            "checkpoint_s",
            "publish_s",
            "loss",
            "tokens_per_s",
            "staleness_max",
        ):
            assert name in events[0].metrics
        assert await learner.objects.get(events[1].checkpoint)  # verified by its digest
    assert [p.version for p in bus.policies()] == [0, 1, 2]
    order = [out.topic.name for out in bus.sent]
    assert order == ["policy.published", *["policy.published", "training.steps"] * 2]


async def test_the_oldest_groups_go_first(learner_folder: Path, s3: MemoryS3, bus: Bus) -> None:
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document(groups_per_step=3))
        for index in (5, 1):
            learner.deliver(await put_group(learner.objects, RUN, index))
        await until(lambda: len(learner.registry.slot(RUN).buffer) == 2)
        learner.registry.slot(RUN).paused = True
        for index in (3, 0):
            learner.deliver(await put_group(learner.objects, RUN, index))
        await until(lambda: len(learner.registry.slot(RUN).buffer) == 4)
        await learner.command(RUN, resume=ResumeRun())
        await until(bus.steps)
        assert list(bus.steps()[0].group_ids) == [f"{RUN}-g{i}" for i in (0, 1, 3)]
        assert not learner.waiting[f"{RUN}-g5"].done()  # waits on, uncommitted


async def test_stale_groups_are_discarded_and_reported(learner_folder: Path, s3: MemoryS3, bus: Bus) -> None:
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document(max_staleness=0))
        await train(learner, 0)
        stale = learner.deliver(await put_group(learner.objects, RUN, 2, version=0))
        await asyncio.wait_for(stale, 30)  # at once: a step to report it may never come
        assert bus.steps()[-1].step == 1
        assert list(bus.steps()[-1].discarded_group_ids) == [f"{RUN}-g2"]
        assert list(bus.steps()[-1].group_ids) == [f"{RUN}-g0", f"{RUN}-g1"]  # the last step's event again
        await train(learner, 3, version=1)
    assert list(bus.steps()[-1].group_ids) == [f"{RUN}-g3", f"{RUN}-g4"]


async def test_staleness_is_per_trajectory(learner_folder: Path, s3: MemoryS3, bus: Bus) -> None:
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document(max_staleness=0))
        await train(learner, 0)
        mixed = await put_group(learner.objects, RUN, 2, version=1, rewards=(1.0, 0.0, 0.5))
        mixed.trajectories[0].version_min = 0
        other = await put_group(learner.objects, RUN, 3, version=1)
        await asyncio.gather(learner.deliver(mixed), learner.deliver(other))
    episodes = set(bus.steps()[-1].episode_ids)
    assert f"{RUN}-g2-e0" not in episodes
    assert {f"{RUN}-g2-e1", f"{RUN}-g2-e2", f"{RUN}-g3-e0", f"{RUN}-g3-e1"} == episodes
    assert bus.steps()[-1].metrics["staleness_max"] == 0


async def test_a_group_within_the_bound_is_trained(learner_folder: Path, s3: MemoryS3, bus: Bus) -> None:
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document(max_staleness=1))
        await train(learner, 0)
        await train(learner, 2, version=0)
    assert bus.steps()[-1].step == 2
    assert bus.steps()[-1].metrics["staleness_mean"] == 1


async def test_a_group_that_comes_twice_is_trained_once(learner_folder: Path, s3: MemoryS3, bus: Bus) -> None:
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document())
        group = await put_group(learner.objects, RUN, 0)
        first, second = learner.deliver(group), learner.deliver(group)
        await until(lambda: len(learner.registry.slot(RUN).buffer) == 1)
        await asyncio.sleep(0.1)
        assert not bus.steps()
        await train(learner, 1, 1)
        await asyncio.gather(first, second)
    assert list(bus.steps()[0].group_ids) == [f"{RUN}-g0", f"{RUN}-g1"]


async def test_copies_of_a_waiting_group_do_not_pile_up(learner_folder: Path, s3: MemoryS3, bus: Bus) -> None:
    """A run that is paused for long is not to fill the consumer, or `resume` would never be read."""
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document())
        group = await put_group(learner.objects, RUN, 0)
        first = learner.deliver(group)
        await until(lambda: len(learner.registry.slot(RUN).buffer) == 1)
        for _ in range(3):
            await asyncio.wait_for(learner.deliver(group), 10)
        assert not first.done()
        elsewhere = learner.deliver(group, partition=1)  # holds the commit point of its own partition
        await asyncio.sleep(0.1)
        assert not elsewhere.done()


async def test_a_consumed_group_makes_its_step_be_reported_again(
    learner_folder: Path, s3: MemoryS3, bus: Bus
) -> None:
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document())
        await train(learner, 0)
        await train(learner, 2, version=1)
        said = list(bus.steps())
        await asyncio.wait_for(learner.deliver(await put_group(learner.objects, RUN, 1)), 10)
    assert bus.steps()[len(said) :] == [said[0]]
    ids = [out.message_id for out in bus.sent if out.topic is TRAINING_STEPS]
    assert ids[0] == ids[2] != ids[1]


async def test_another_group_with_a_trained_episode_does_not_train_it_again(
    learner_folder: Path, s3: MemoryS3, bus: Bus
) -> None:
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document())
        await train(learner, 0)
        strange = await put_group(learner.objects, RUN, 2, version=1, rewards=(1.0, 0.0, 0.5))
        strange.trajectories[1].ref.episode_id = f"{RUN}-g0-e0"
        await asyncio.gather(
            learner.deliver(strange), learner.deliver(await put_group(learner.objects, RUN, 3, version=1))
        )
    trained = [episode for step in bus.steps() for episode in step.episode_ids]
    assert len(trained) == len(set(trained)) == 8


async def test_unusable_trajectories_are_left_out(learner_folder: Path, s3: MemoryS3, bus: Bus) -> None:
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document())
        broken = await put_group(learner.objects, RUN, 0, rewards=(1.0, 0.0, 0.5))
        s3.objects[learner.objects.key(broken.trajectories[0].turns[0].uri)] = b"garbage"
        lost = await put_group(learner.objects, RUN, 1)
        for trajectory in lost.trajectories:
            del s3.objects[learner.objects.key(trajectory.turns[0].uri)]
        await asyncio.gather(
            learner.deliver(broken),
            learner.deliver(lost),
            learner.deliver(await put_group(learner.objects, RUN, 2)),
        )
    said = bus.steps()
    assert {g for e in said for g in e.discarded_group_ids} == {f"{RUN}-g1"}
    assert f"{RUN}-g0-e0" not in {e for event in said for e in event.episode_ids}
    assert list(said[-1].group_ids) == [f"{RUN}-g0", f"{RUN}-g2"]


async def test_no_step_beyond_the_budget(learner_folder: Path, s3: MemoryS3, bus: Bus) -> None:
    run = document()
    run = run.model_copy(update={"budget": run.budget.model_copy(update={"steps": 1})})
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, run)
        await train(learner, 0)
        late = [learner.deliver(await put_group(learner.objects, RUN, i, version=1)) for i in (2, 3)]
        await asyncio.sleep(0.3)
        assert len(bus.steps()) == 1
        await learner.command(RUN, finish=FinishRun(state="succeeded"))
        await asyncio.wait_for(asyncio.gather(*late), 10)
    assert len(bus.steps()) == 1


@pytest.mark.parametrize("kind", ["cancel", "finish"])
async def test_a_run_that_is_over_is_let_go(learner_folder: Path, s3: MemoryS3, bus: Bus, kind: str) -> None:
    command: dict[str, Any] = {
        "cancel": {"cancel": CancelRun(reason="enough")},
        "finish": {"finish": FinishRun(state="succeeded")},
    }[kind]
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document())
        await train(learner, 0)
        waits = learner.deliver(await put_group(learner.objects, RUN, 2, version=1))
        await until(lambda: len(learner.registry.slot(RUN).buffer) == 1)
        await learner.command(RUN, **command)
        await asyncio.wait_for(waits, 10)
        run = learner.registry.slot(RUN)
        await until(lambda: run.trainer is None)
        await asyncio.wait_for(learner.deliver(await put_group(learner.objects, RUN, 3, version=1)), 10)
        await learner.create(RUN, document())  # a late redelivery
    assert len(bus.steps()) == 1
    assert "policies/run-1/1/manifest.json" in s3.objects  # the final policy stays
    assert s3.list("checkpoints/run-1/1/")
    async with running(learner_folder, s3, bus) as other:  # and it stays over
        await asyncio.wait_for(other.deliver(await put_group(other.objects, RUN, 4, version=1)), 10)
    assert len(bus.steps()) == 1


async def test_pause_frees_the_memory_and_resume_goes_on(
    learner_folder: Path, s3: MemoryS3, bus: Bus
) -> None:
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document())
        await train(learner, 0)
        run = learner.registry.slot(RUN)
        assert run.trainer is not None
        await learner.command(RUN, pause=PauseRun())
        await until(lambda: run.trainer is None)
        waits = [learner.deliver(await put_group(learner.objects, RUN, i, version=1)) for i in (2, 3)]
        await asyncio.sleep(0.3)
        assert len(bus.steps()) == 1
        await learner.command(RUN, resume=ResumeRun())
        await asyncio.wait_for(asyncio.gather(*waits), 30)
    assert [step.step for step in bus.steps()] == [1, 2]


async def test_a_pause_outlives_the_process(learner_folder: Path, s3: MemoryS3, bus: Bus) -> None:
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document())
        await learner.command(RUN, pause=PauseRun())
    async with running(learner_folder, s3, bus) as other:
        for index in (0, 1):
            other.deliver(await put_group(other.objects, RUN, index))
        await asyncio.sleep(0.3)
        assert not bus.steps()


async def test_a_command_that_another_learner_got_is_seen(
    learner_folder: Path, s3: MemoryS3, bus: Bus
) -> None:
    async with running(learner_folder, s3, bus) as one, running(learner_folder, s3, bus) as other:
        await one.create(RUN, document())
        waits = one.deliver(await put_group(one.objects, RUN, 0))
        await until(lambda: len(one.registry.slot(RUN).buffer) == 1)
        await other.command(RUN, cancel=CancelRun())
        await asyncio.wait_for(waits, 10)


async def test_a_cancelled_run_stops_between_micro_batches(
    learner_folder: Path, s3: MemoryS3, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered = asyncio.Event()
    loop = asyncio.get_running_loop()
    real = Trainer._backward

    def slow(self: Trainer, *arguments: Any) -> float:
        loop.call_soon_threadsafe(entered.set)
        return real(self, *arguments)

    monkeypatch.setattr(Trainer, "_backward", slow)
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document(micro_tokens=64, groups_per_step=200))
        tasks = [learner.deliver(await put_group(learner.objects, RUN, i)) for i in range(200)]
        await asyncio.wait_for(entered.wait(), 60)
        await learner.command(RUN, cancel=CancelRun())
        await asyncio.wait_for(asyncio.gather(*tasks), 30)
        await until(lambda: learner.registry.slot(RUN).trainer is None)
    assert not bus.steps()
    assert not s3.list("checkpoints/run-1/1/")


async def test_runs_take_turns_and_one_is_loaded(learner_folder: Path, s3: MemoryS3, bus: Bus) -> None:
    async with running(learner_folder, s3, bus) as learner:
        for name in ("a", "b"):
            await learner.create(name, document())
        learner.registry.slot("a").paused = learner.registry.slot("b").paused = True
        tasks = []
        for name in ("a", "b"):
            groups = [await put_group(learner.objects, name, i) for i in range(4)]
            tasks += [learner.deliver(group) for group in groups]
        await until(lambda: all(len(learner.registry.slot(n).buffer) == 4 for n in "ab"))
        for name in ("a", "b"):
            await learner.command(name, resume=ResumeRun())
        await asyncio.wait_for(asyncio.gather(*tasks), 60)
        assert sum(run.trainer is not None for run in learner.registry) == 1
    assert sorted((s.run_id, s.step) for s in bus.steps()) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert [s.run_id for s in bus.steps()][:2] in (["a", "b"], ["b", "a"])


async def test_old_checkpoints_and_policies_are_pruned(learner_folder: Path, s3: MemoryS3, bus: Bus) -> None:
    run = document()
    run = run.model_copy(update={"limits": run.limits.model_copy(update={"keep_policies": 1})})
    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, run)
        for step in range(4):
            await train(learner, 2 * step, version=step)

        def checkpoints() -> set[str]:
            return {key.split("/")[2] for key in s3.list("checkpoints/run-1/") if "manifest" in key}

        await until(lambda: checkpoints() == {"3", "4"})
        await until(lambda: not s3.list("policies/run-1/3/"))
        published = await policies.versions(learner.objects, RUN)
        # A group of a step whose checkpoint is gone is still answered for.
        await asyncio.wait_for(learner.deliver(await put_group(learner.objects, RUN, 0)), 10)
    assert len([key for key in s3.objects if key.endswith("weights.safetensors")]) == 2
    assert published == [0, 4]
    assert bus.steps()[-1].step == 1


async def test_an_unknown_run_is_rejected(learner_folder: Path, s3: MemoryS3, bus: Bus) -> None:
    async with running(learner_folder, s3, bus) as learner:
        with pytest.raises(Reject, match="never created"):
            await learner.deliver(await put_group(learner.objects, "nobody", 0))
        with pytest.raises(Reject, match="unparseable"):
            await learner.command(RUN, create=CreateRun(document_json="{}"))
        with pytest.raises(Reject, match="does not know"):
            await learner.handlers.command(received(RUN_COMMANDS, RunCommand(run_id=RUN), RUN))


async def test_an_outage_during_a_step_delays_it_and_nothing_else(
    learner_folder: Path, s3: MemoryS3, bus: Bus
) -> None:
    failing = {"left": 3}

    def fail(key: str) -> None:
        if "weights.safetensors" in key and failing["left"]:
            failing["left"] -= 1
            raise StoreUnavailable("away")

    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document())
        learner.objects._settings.deadline_s = 0.05  # no patience within one operation
        s3.before_write = fail
        await train(learner, 0)
    assert failing["left"] == 0
    assert [step.step for step in bus.steps()] == [1]


async def test_a_bus_outage_after_the_commit_is_healed_without_training_again(
    learner_folder: Path, s3: MemoryS3, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    real = Trainer.step
    monkeypatch.setattr(Trainer, "step", lambda self, *a: steps.append(1) or real(self, *a))
    failing = {"left": 2}

    def fail(out: Outgoing) -> None:
        if out.topic is TRAINING_STEPS and failing["left"]:
            failing["left"] -= 1
            raise BusUnavailable("away")

    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document())
        bus.before_send = fail
        await train(learner, 0)
    assert failing["left"] == 0
    assert steps == [1]
    assert [step.step for step in bus.steps()] == [1]


async def test_a_refused_step_fails_the_run_and_publishes_nothing(
    learner_folder: Path, s3: MemoryS3, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> dict[str, float]:
        raise StepRefused("non_finite_loss", "the loss is not finite")

    async with running(learner_folder, s3, bus) as learner:
        await learner.create(RUN, document())
        monkeypatch.setattr(Trainer, "step", refuse)
        await train(learner, 0)
        monkeypatch.undo()
        await train(learner, 2)
    assert [(e.failure.boundary, e.failure.reason) for e in bus.steps()] == [("learner", "non_finite_loss")]
    assert [p.version for p in bus.policies()] == [0]


async def test_a_step_that_keeps_failing_fails_its_run_only(
    learner_folder: Path, s3: MemoryS3, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []
    real = Trainer.step

    def fail(self: Trainer, *arguments: Any) -> dict[str, float]:
        if self._seed == 13:
            tries.append(1)
            raise RuntimeError("out of memory")
        return real(self, *arguments)

    monkeypatch.setattr(Trainer, "step", fail)
    with capture_logs():  # the default log of a traceback prints every tensor in it
        await _one_bad_and_one_good(learner_folder, s3, bus)
    failures = {e.run_id: e.failure.detail for e in bus.steps() if e.HasField("failure")}
    assert failures == {"bad": "RuntimeError: out of memory"}
    assert len(tries) == 3
    assert [e.step for e in bus.steps() if e.run_id == "good"] == [1]


async def _one_bad_and_one_good(learner_folder: Path, s3: MemoryS3, bus: Bus) -> None:
    async with running(learner_folder, s3, bus) as learner:
        await learner.create("bad", document().model_copy(update={"seed": 13}))
        await learner.create("good", document())
        await asyncio.gather(train(learner, 0, run_id="bad"), train(learner, 0, run_id="good"))
