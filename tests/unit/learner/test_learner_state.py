"""Ledger, checkpoints, control, scratch."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sandpiper.store.errors import CorruptObject, StoreRefused
from sandpiper.v1.training_pb2 import TrainingStep
from services.learner.scratch import Scratch
from services.learner.state.checkpoints import CheckpointManifest, Checkpoints, encode_event
from services.learner.state.control import Claim, Control, Controls
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


def manifest(step: int, files: dict[str, object] | None = None) -> CheckpointManifest:
    event = TrainingStep(run_id="r", step=step, policy_version=step, group_ids=[f"g{step}"])
    return CheckpointManifest.model_validate(
        {
            "run_id": "r",
            "step": step,
            "version": step,
            "document": "{}",
            "files": files or {},
            "event": encode_event(event),
        }
    )


STATE = {"weights.safetensors": b"tensors", "exp_avg.safetensors": b"moments"}


def state_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    for name, data in STATE.items():
        (folder / name).write_bytes(data)
    return folder


async def test_the_newest_manifest_is_the_checkpoint(tmp_path: Path) -> None:
    s3 = MemoryS3()
    checkpoints = Checkpoints(store_of(s3))
    assert await checkpoints.latest("r") is None
    state = state_folder(tmp_path)
    for step in (9, 10):
        files = await checkpoints.put_state("r", step, "try-1", state, Ledger().with_step(entry(step, "g")))
        await checkpoints.commit(manifest(step).model_copy(update={"files": files}))
    await checkpoints.put_state("r", 11, "try-2", state, Ledger())  # never committed
    found = await checkpoints.latest("r")
    assert found is not None
    newest, blob = found
    assert newest.step == 10
    assert newest.training_step(blob).checkpoint == blob
    assert newest.training_step(blob).group_ids == ["g10"]
    assert (await checkpoints.ledger(newest)).step_of("g") == 10
    assert await checkpoints.fetch_state(newest, tmp_path / "got")
    assert {path.name: path.read_bytes() for path in (tmp_path / "got").iterdir()} == STATE
    s3.objects["checkpoints/r/10/manifest-000000.json"] = b"{"
    with pytest.raises(CorruptObject):
        await checkpoints.latest("r")


async def test_pruning_takes_the_manifest_first_and_keeps_what_is_newer(tmp_path: Path) -> None:
    s3 = MemoryS3()
    checkpoints = Checkpoints(store_of(s3))
    state = state_folder(tmp_path)
    for step in (1, 2, 3):
        await checkpoints.put_state("r", step, "a", state, Ledger())
        await checkpoints.commit(manifest(step))
        await checkpoints.put_event(TrainingStep(run_id="r", step=step))
    await checkpoints.put_state("r", 3, "lost", state, Ledger())
    await checkpoints.put_state("r", 4, "under-way", state, Ledger())
    deleted: list[str] = []
    s3.before_write = deleted.append
    await checkpoints.prune("r", 2)
    assert deleted[0] == "delete checkpoints/r/1/manifest-000000.json"
    assert await checkpoints.steps("r") == [2, 3]
    assert s3.list("checkpoints/r/4/under-way/")
    assert not s3.list("checkpoints/r/1/")
    assert [(await checkpoints.event("r", step)) is not None for step in (1, 2, 3, 4)] == [True] * 3 + [False]


async def test_keeping_no_checkpoint_of_a_finished_run_keeps_none(tmp_path: Path) -> None:
    s3 = MemoryS3()
    checkpoints = Checkpoints(store_of(s3))
    state = state_folder(tmp_path)
    for step in (1, 2):
        await checkpoints.put_state("r", step, "a", state, Ledger())
        await checkpoints.commit(manifest(step))
    await checkpoints.prune("r", 0)
    assert await checkpoints.steps("r") == []


async def test_an_end_is_final() -> None:
    controls = Controls(store_of(MemoryS3()))
    assert await controls.get("r") is None
    await controls.put("r", Control(state="active"))
    await controls.put("r", Control(state="paused"))
    assert await controls.get("r") == Control(state="paused")
    await controls.put("r", Control(state="ended", reason="done"))
    assert await controls.put("r", Control(state="active")) == Control(state="ended", reason="done")
    assert await controls.get("r") == Control(state="ended", reason="done")


async def test_a_command_that_is_handled_late_does_not_undo_a_newer_one() -> None:
    controls = Controls(store_of(MemoryS3()))
    await controls.put("r", Control(state="active", at=2.0))
    assert await controls.put("r", Control(state="paused", at=1.0)) == Control(state="active", at=2.0)
    assert (await controls.put("r", Control(state="paused", at=3.0))).state == "paused"
    assert (await controls.put("r", Control(state="ended"))).state == "ended"


async def test_the_newest_claim_owns_a_run() -> None:
    controls = Controls(store_of(MemoryS3()))
    first = await controls.claim("r", "a")
    assert await controls.holds("r", first)
    second = await controls.claim("r", "b")
    assert second.number == first.number + 1
    assert [await controls.holds("r", claim) for claim in (first, second)] == [False, True]
    assert not await controls.holds("other", second)


async def test_a_damaged_owner_is_nobody_and_is_replaced() -> None:
    s3 = MemoryS3()
    controls = Controls(store_of(s3))
    s3.objects["checkpoints/r/owner.json"] = b"learner-01"
    claim = await controls.claim("r", "a")
    assert claim.number == 1
    assert await controls.holds("r", claim)


async def test_who_is_overtaken_while_it_claims_claims_again() -> None:
    s3 = MemoryS3()
    controls = Controls(store_of(s3))
    rivals = ["rival"]

    def overtake() -> None:
        if rivals:
            rival = Claim(number=5, token=rivals.pop())
            s3.objects["checkpoints/r/owner.json"] = rival.model_dump_json().encode()

    read = s3.read

    def read_after_rival(key: str) -> bytes:
        if s3.objects.get(key, b"").endswith(b'"late"}'):
            overtake()
        return read(key)

    s3.read = read_after_rival  # type: ignore[method-assign]
    claim = await controls.claim("r", "late")
    assert claim == Claim(number=6, token="late")


async def test_a_state_of_which_one_file_cannot_be_stored_is_not_stored(tmp_path: Path) -> None:
    s3 = MemoryS3()

    def refuse(key: str) -> None:
        if key.endswith("exp_avg.safetensors"):
            raise StoreRefused("no")

    s3.before_write = refuse
    with pytest.raises(StoreRefused):
        await Checkpoints(store_of(s3)).put_state("r", 1, "a", state_folder(tmp_path), Ledger())


async def test_what_an_older_claim_commits_late_does_not_count() -> None:
    checkpoints = Checkpoints(store_of(MemoryS3()))
    await checkpoints.commit(manifest(3).model_copy(update={"claim": 2, "token": "b", "base": "successor"}))
    await checkpoints.commit(manifest(3).model_copy(update={"claim": 1, "token": "a", "base": "stalled"}))
    found = await checkpoints.latest("r")
    assert found is not None
    assert found[0].base == "successor"
    assert await checkpoints.steps("r") == [3]


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
