"""The embedded stack with real parts: what it keeps, what it restarts, what it leaves behind (nothing)."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest
from aiokafka.admin import AIOKafkaAdminClient

from sandpiper.embedded import reaper
from sandpiper.embedded.errors import StackError
from sandpiper.embedded.launch import launch, shut_down
from sandpiper.embedded.options import StackOptions
from sandpiper.embedded.ports import Ports
from sandpiper.embedded.state import DataFolder, StackState
from sandpiper.store.objects import ObjectStore, StoreUnavailable
from sandpiper.topics import TOPICS
from tests.integration.embedded import leftovers
from tests.stack import MakeStack, RunningStack, start_stack

BARE: dict[str, int] = dict.fromkeys(
    ("api", "rollout-orchestrator", "inference", "sandbox-executor", "reward-grader", "learner"), 0
)

IGNORES_SIGTERM = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(100)
"""


def wait_until(condition: Callable[[], bool], within_s: float, what: str) -> None:
    ends = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < ends, f"not within {within_s} s: {what}"
        time.sleep(0.05)


def wait_clean(state: StackState, data_dir: Path, segment: str | None, within_s: float = 15.0) -> None:
    wait_until(
        lambda: leftovers.of(state, data_dir, segment) == [],
        within_s,
        f"clean, but {leftovers.of(state, data_dir, segment)}",
    )


def kill(stack: RunningStack, name: str) -> None:
    """kill -9 of a process; returns once the supervisor has put another in its place."""
    before = stack.process(name)
    assert before.pid is not None
    os.kill(before.pid, signal.SIGKILL)
    wait_until(
        lambda: stack.process(name).state == "ready" and stack.process(name).pid not in {None, before.pid},
        30,
        f"{name} is back",
    )
    assert stack.process(name).restarts == before.restarts + 1


async def topics(stack: RunningStack) -> set[str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=stack.first.bootstrap)
    await admin.start()
    try:
        return set(await admin.list_topics())
    finally:
        await admin.close()


async def query(stack: RunningStack, sql: str) -> object:
    connection = await asyncpg.connect(stack.database_url.replace("+asyncpg", ""))
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


async def test_stop_leaves_nothing_and_data_is_taken_up_again(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    stack = start_stack(data_dir, replicas=BARE)
    try:
        assert set(TOPICS) <= await topics(stack)
        assert await query(stack, "select count(*) from task_sets") == 0
        await query(stack, "create table kept as select 42 as answer")
        objects = ObjectStore(stack.objects)
        await objects.put("kept", b"object")
        await objects.close()
        segment = leftovers.shared_memory(data_dir)
        assert segment is not None
        assert len(leftovers.processes(stack.state, data_dir)) >= 5, "the search for leftovers must see them"
    finally:
        stack.stop()
    assert leftovers.of(stack.first, data_dir, segment) == []
    assert list((data_dir / "postgres").glob("postmaster.pid")) == []

    again = start_stack(data_dir, replicas=BARE)
    try:
        assert await query(again, "select answer from kept") == 42
        objects = ObjectStore(again.objects)
        assert await objects.read("kept") == b"object"
        await objects.close()
    finally:
        again.stop()


async def test_secrets_are_needed_and_the_service_role_is_no_superuser(infra: RunningStack) -> None:
    url = infra.database_url.replace("+asyncpg", "")
    host = url.rpartition("@")[2]
    for wrong in (f"postgresql://sandpiper:guess@{host}", f"postgresql://postgres@{host}"):
        with pytest.raises((asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError)):
            await asyncpg.connect(wrong, timeout=5)
    assert await query(infra, "select rolsuper from pg_roles where rolname = current_user") is False
    for process in infra.state.processes:
        assert process.pid is not None
        arguments = Path(f"/proc/{process.pid}/cmdline").read_text()
        for secret in (infra.first.objects_secret_key, infra.folder.secrets().postgres_admin):
            assert secret not in arguments


async def test_each_part_is_restarted_when_killed(make_stack: MakeStack) -> None:
    stack = make_stack(replicas=BARE)
    await query(stack, "create table kept as select 42 as answer")
    objects = ObjectStore(stack.objects)
    await objects.put("kept", b"object")

    await asyncio.to_thread(kill, stack, "broker")
    assert set(TOPICS) <= await topics(stack), (
        "the topics of a fresh broker are made before it counts as ready"
    )
    await asyncio.to_thread(kill, stack, "postgres")
    assert await query(stack, "select answer from kept") == 42
    await asyncio.to_thread(kill, stack, "objects")
    assert await objects.read("kept") == b"object"
    await objects.close()


async def test_calls_outlast_a_short_outage_of_the_store(make_stack: MakeStack) -> None:
    stack = make_stack(replicas=BARE)
    objects = ObjectStore(stack.objects)
    await objects.start()
    pid = stack.process("objects").pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    puts = [objects.put(f"outage/{number}", bytes([number]) * 1000) for number in range(20)]
    blobs = await asyncio.gather(*puts)
    assert [await objects.get(blob) for blob in blobs] == [bytes([number]) * 1000 for number in range(20)]
    await objects.close()


async def test_a_frozen_store_is_unavailable_within_the_deadline(make_stack: MakeStack) -> None:
    stack = make_stack(replicas=BARE)
    quick = {"connect_timeout_s": 0.5, "read_timeout_s": 0.5, "deadline_s": 2.0}
    objects = ObjectStore(stack.objects.model_copy(update=quick))
    await objects.put("before", b"x")
    pid = stack.process("objects").pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        results = await asyncio.gather(
            objects.put("frozen", b"x"),
            objects.read("before"),
            objects.exists("before"),
            return_exceptions=True,
        )
        took = time.monotonic() - began
    finally:
        os.kill(pid, signal.SIGCONT)
    assert [type(result) for result in results] == [StoreUnavailable] * 3
    assert took < 3.0
    assert await objects.read("before") == b"x"
    await objects.close()


async def test_an_upload_that_the_store_does_not_survive_is_not_there(
    make_stack: MakeStack, tmp_path: Path
) -> None:
    stack = make_stack(replicas=BARE)
    objects = ObjectStore(stack.objects)
    old = await objects.put("replaced", b"old")
    large = tmp_path / "large"
    large.write_bytes(os.urandom(1 << 20) * 200)
    uploading = asyncio.create_task(objects.put_file("replaced", large))
    folder = stack.options.data_dir / "objects"
    async with asyncio.timeout(30):
        while not any(path.name.startswith(".rclone_temp") for path in folder.rglob("*")):
            await asyncio.sleep(0.005)
    pid = stack.process("objects").pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    uploading.cancel()
    await asyncio.gather(uploading, return_exceptions=True)
    assert await objects.read("replaced") in {b"old"}
    assert await objects.get(old) == b"old"
    await objects.close()


@pytest.mark.parametrize("guardian_too", [False, True])
def test_kill_9_of_the_supervisor_leaves_nothing(tmp_path: Path, guardian_too: bool) -> None:
    data_dir = tmp_path / "data"
    stack = start_stack(data_dir, replicas=BARE)
    segment = leftovers.shared_memory(data_dir)
    if guardian_too:
        guardians = [pid for pid in _children(stack.first.supervisor_pid) if "reaper.py" in _cmdline(pid)]
        assert len(guardians) == 1
        os.kill(guardians[0], signal.SIGSTOP)  # it will not see the supervisor go
        os.kill(stack.first.supervisor_pid, signal.SIGKILL)
        os.kill(guardians[0], signal.SIGKILL)
        # The kernel ends the parts; the next start clears the rest.
        wait_until(lambda: leftovers.processes(stack.first, data_dir) == [], 15, "processes gone")
        assert stack.first.temp_dir.exists()
        again = start_stack(data_dir, replicas=BARE)
        assert not stack.first.temp_dir.exists()
        assert again.first.token != stack.first.token
        again.stop()
    else:
        os.kill(stack.first.supervisor_pid, signal.SIGKILL)
    stack.launched.process.wait(5)
    wait_clean(stack.first, data_dir, segment)


def test_strays_of_a_killed_stack_are_ended_by_the_next_start_and_by_down(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    folder = DataFolder(data_dir)
    for clear in (lambda: start_stack(data_dir, replicas=BARE).stop(), lambda: shut_down(folder)):
        token = os.urandom(8).hex()
        stray = subprocess.Popen(
            [sys.executable, "-c", IGNORES_SIGTERM],
            env={reaper.MARK: f"{token}/learner"},
            start_new_session=True,
            stdout=subprocess.PIPE,
        )
        try:
            assert stray.stdout is not None
            assert stray.stdout.readline() == b"up\n"
            data_dir.mkdir(exist_ok=True)
            temp = tmp_path / "temp"
            temp.mkdir()
            state = StackState(
                token=token,
                supervisor_pid=os.getpid(),
                supervisor_ticks=1,  # not ours: the pid was reused
                temp_dir=temp,
                bootstrap="",
                database_url="",
                objects_endpoint="",
                objects_access_key="",
                objects_secret_key="",
            )
            folder.write_state(state)
            clear()
            assert stray.wait(5) == -signal.SIGKILL
            assert not temp.exists()
            assert folder.read_state() is None
        finally:
            stray.kill()
            stray.communicate()


def test_the_stack_ends_with_the_process_that_launched_it(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    code = (
        "import sys, time\n"
        "from tests.stack import start_stack\nfrom pathlib import Path\n"
        f"start_stack(Path(sys.argv[1]), replicas={BARE!r})\nprint('up', flush=True)\ntime.sleep(100)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(data_dir)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "up\n"
    state = DataFolder(data_dir).read_state()
    assert state is not None
    segment = leftovers.shared_memory(data_dir)
    parent.kill()
    parent.communicate()
    wait_clean(state, data_dir, segment)


def test_a_signal_while_starting_leaves_nothing(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    options = StackOptions(data_dir=data_dir, replicas=BARE, api_port=0)
    seen: list[StackState] = []

    def interrupt(state: StackState) -> None:
        seen.append(state)
        os.kill(state.supervisor_pid, signal.SIGTERM)

    with pytest.raises(StackError):
        launch(options, with_parent=True, progress=interrupt)
    wait_clean(seen[0], data_dir, leftovers.shared_memory(data_dir))


def test_a_taken_port_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with socket.socket() as other:
        other.bind(("127.0.0.1", Ports().take(0, "x", "")))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(StackError, match=f"port {port} for the broker is taken .* --broker-port"):
            start_stack(data_dir, replicas=BARE, broker_port=port)
    assert not (data_dir / "stack.json").exists()


def test_one_stack_per_data_folder(make_stack: MakeStack) -> None:
    stack = make_stack(replicas=BARE)
    with pytest.raises(StackError, match="already runs"):
        start_stack(stack.options.data_dir, replicas=BARE)
    assert stack.state.supervisor_alive
    assert [process.state for process in stack.state.processes] == ["ready"] * 3


def test_a_part_that_cannot_start_fails_the_start_with_its_reason(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    start_stack(data_dir, replicas=BARE).stop()
    (data_dir / "postgres" / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(StackError, match=r"(?s)postgres ended .*incompatible"):
        start_stack(data_dir, replicas=BARE)
    assert not (data_dir / "stack.json").exists()


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _cmdline(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()
