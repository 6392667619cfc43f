"""Ledger, checkpoints, control, scratch."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sandpiper.store.errors import CorruptObject
from sandpiper.v1.training_pb2 import TrainingStep
from services.learner.scratch import Scratch
from services.learner.state.checkpoints import (
    CheckpointManifest,
    Checkpoints,
    Lineage,
    Logged,
    StoredFile,
    encode_event,
)
from services.learner.state.control import Control, Controls
from services.learner.state.ledger import Consumed, Ledger
from tests.unit.learner.learner_kit import MemoryS3, store_of


def entry(step: int, *groups: str, discarded: tuple[str, ...] = ()) -> Consumed:
    return Consumed(step, groups, tuple(f"{g}-e" for g in groups), discarded)


def test_a_ledger_remembers_over_its_encoding() -> None:
    ledger = Ledger().with_step(entry(1, "a", "b", discarded=("c",))).with_step(entry(2, "d"))
    for known in (ledger, Ledger.decode(ledger.encode())):
        assert [known.step_of(g) for g in "abcdx"] == [1, 1, 1, 2, None]
        assert known.trained(["a-e", "c-e", "z"]) == ["a-e"]
        assert known.steps == ledger.steps


@pytest.mark.parametrize(
    "again",
    [
        entry(2, "a"),
        entry(2, "x", discarded=("a",)),
        Consumed(2, ("x",), ("a-e",), ()),
        Consumed(2, ("x", "x"), (), ()),
        Consumed(2, ("x",), ("y", "y"), ()),
    ],
)
def test_nothing_is_consumed_twice(again: Consumed) -> None:
    with pytest.raises(ValueError, match="again"):
        Ledger().with_step(entry(1, "a")).with_step(again)


def manifest(
    step: int, lineage: Lineage | None = None, ledger: StoredFile | None = None
) -> CheckpointManifest:
    event = TrainingStep(run_id="r", step=step, policy_version=step, group_ids=[f"g{step}"])
    return CheckpointManifest(
        run_id="r",
        step=step,
        version=step,
        document="{}",
        lineage=lineage or Lineage(),
        ledger=ledger,
        event=encode_event(event),
    )


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state-00000.safetensors"
    path.write_bytes(b"tensors")
    return path


async def put(checkpoints: Checkpoints, step: int, path: Path, before: Lineage | None = None) -> Lineage:
    """Commit a step that stores `path`: as a full state, or with `before` as gradients on top of it."""
    attempt = f"try-{step}"
    file = {path.name: await checkpoints.put_file("r", step, attempt, path)}
    lineage = Lineage(origin_step=step, origin=file)
    if before is not None:
        lineage = before.model_copy(update={"log": (*before.log, Logged(step=step, files=file))})
    ledger = await checkpoints.put_ledger("r", step, attempt, Ledger().with_step(entry(step, "g")))
    await checkpoints.commit(manifest(step, lineage, ledger))
    await checkpoints.put_event(TrainingStep(run_id="r", step=step))
    return lineage


async def test_the_newest_manifest_is_the_checkpoint(state: Path, tmp_path: Path) -> None:
    s3 = MemoryS3()
    checkpoints = Checkpoints(store_of(s3))
    assert await checkpoints.latest("r") is None
    for step in (9, 10):
        await put(checkpoints, step, state)
    await checkpoints.put_file("r", 11, "try-2", state)  # never committed
    found = await checkpoints.latest("r")
    assert found is not None
    newest, blob = found
    assert newest.step == 10
    assert newest.training_step(blob).checkpoint == blob
    assert newest.training_step(blob).group_ids == ["g10"]
    assert (await checkpoints.ledger(newest)).step_of("g") == 10
    await checkpoints.fetch(newest.lineage.origin[state.name], tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == b"tensors"
    s3.objects["checkpoints/r/10/manifest.json"] = b"{"
    with pytest.raises(CorruptObject):
        await checkpoints.latest("r")


async def test_pruning_takes_the_manifest_first_and_keeps_what_is_newer(state: Path) -> None:
    s3 = MemoryS3()
    checkpoints = Checkpoints(store_of(s3))
    for step in (1, 2, 3):
        await put(checkpoints, step, state)
    await checkpoints.put_file("r", 3, "lost", state)
    await checkpoints.put_file("r", 4, "under-way", state)
    deleted: list[str] = []
    s3.before_write = deleted.append
    await checkpoints.prune("r", 2)
    assert deleted[0] == "delete checkpoints/r/1/manifest.json"
    assert await checkpoints.steps("r") == [2, 3]
    assert s3.list("checkpoints/r/4/under-way/")
    assert not s3.list("checkpoints/r/3/lost/")
    assert not s3.list("checkpoints/r/1/")
    assert [(await checkpoints.event("r", step)) is not None for step in (1, 2, 3, 4)] == [True] * 3 + [False]


async def test_pruning_keeps_what_a_kept_checkpoint_is_made_of(state: Path) -> None:
    s3 = MemoryS3()
    checkpoints = Checkpoints(store_of(s3))
    lineage = Lineage()
    for step in (1, 2, 3):
        lineage = await put(checkpoints, step, state, before=lineage)
    await checkpoints.prune("r", 1)
    assert await checkpoints.steps("r") == [3]
    assert [len(s3.list(f"checkpoints/r/{step}/")) for step in (1, 2, 3)] == [1, 1, 3]
    await put(checkpoints, 4, state)  # a full one: the log is not needed any more
    await checkpoints.prune("r", 1)
    assert [len(s3.list(f"checkpoints/r/{step}/")) for step in (1, 2, 3, 4)] == [0, 0, 0, 3]


async def test_an_end_is_final() -> None:
    controls = Controls(store_of(MemoryS3()))
    assert await controls.get("r") is None
    await controls.put("r", Control(state="active"))
    await controls.put("r", Control(state="paused"))
    assert await controls.get("r") == Control(state="paused")
    await controls.put("r", Control(state="ended", reason="done"))
    assert await controls.put("r", Control(state="active")) == Control(state="ended", reason="done")
    assert await controls.get("r") == Control(state="ended", reason="done")


async def test_the_newest_claim_owns_a_run() -> None:
    controls = Controls(store_of(MemoryS3()))
    assert not await controls.owns("r", "a")
    await controls.claim("r", "a")
    assert await controls.owns("r", "a")
    await controls.claim("r", "b")
    assert [await controls.owns("r", token) for token in "ab"] == [False, True]


def test_scratch_of_a_killed_process_is_removed_and_of_a_live_one_is_not(tmp_path: Path) -> None:
    code = textwrap.dedent(
        f"""
        import os, signal
        from pathlib import Path
        from services.learner.scratch import Scratch
        scratch = Scratch(Path({str(tmp_path)!r}))
        (scratch.base("r")).mkdir()
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    alive = Scratch(tmp_path)
    path = [str(Path(__file__).parents[3]), str(Path(__file__).parents[3] / "libs")]
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(path)}, check=False)
    assert len(list(tmp_path.iterdir())) == 2
    other = Scratch(tmp_path)
    assert other.swept == 1
    with alive.folder("step") as folder:
        assert folder.is_dir()
    alive.close()
    other.close()
    assert not list(tmp_path.iterdir())
