"""What every backend must do. Each test runs on each backend of `backends.BACKENDS`."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
import time

import pytest

from sandpiper.v1 import sandbox_pb2 as pb
from services.sandbox_executor.backend.bubblewrap.backend import BubblewrapBackend
from services.sandbox_executor.backend.protocol import (
    Backend,
    FileSpec,
    Refused,
    RunSpec,
    Sandbox,
    SandboxError,
    SandboxSpec,
)
from services.sandbox_executor.outcome import decide
from tests.integration.sandbox_executor.backends import LIMITS, limits, python, shell, uids_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1 << 20


async def test_a_program_gets_a_clean_world(sandbox: Sandbox) -> None:
    evidence = await shell(
        sandbox, "id -u; pwd; ls -A /workspace; env | sort; ls /home /root /mnt 2>&1 | wc -l"
    )
    assert decide(evidence, LIMITS) == pb.OUTCOME_OK
    lines = evidence.stdout.decode().splitlines()
    assert lines[:2] == ["1000", "/workspace"]
    assert "HOME=/workspace" in lines
    names = {line.split("=")[0] for line in lines if "=" in line}
    assert names <= {
        "HOME",
        "LANG",
        "PATH",
        "PWD",
        "SHELL",
        "TMPDIR",
        "TZ",
        "USER",
        "PYTHONDONTWRITEBYTECODE",
    } | {
        "NPM_CONFIG_CACHE",
        "NPM_CONFIG_UPDATE_NOTIFIER",
    }
    assert lines[-1] == "3", "host folders are visible"


async def test_exit_code_and_both_streams(sandbox: Sandbox) -> None:
    evidence = await shell(sandbox, "echo out; echo err >&2; exit 3")
    assert (evidence.stdout, evidence.stderr, evidence.exit_code) == (b"out\n", b"err\n", 3)
    assert decide(evidence, LIMITS) == pb.OUTCOME_NONZERO_EXIT


async def test_a_signal_is_told(sandbox: Sandbox) -> None:
    evidence = await shell(sandbox, "kill -SEGV $$")
    assert (evidence.signal, evidence.exit_code) == (11, 0)
    assert decide(evidence, LIMITS) == pb.OUTCOME_SIGNALED


async def test_a_program_that_is_not_there_exits_127(sandbox: Sandbox) -> None:
    evidence = await sandbox.run(RunSpec(["no-such-program"], LIMITS))
    assert evidence.exit_code == 127
    assert b"not found" in evidence.stderr


async def test_a_file_that_is_not_executable_exits_126(sandbox: Sandbox) -> None:
    await sandbox.write([FileSpec("data.txt", b"x")])
    assert (await sandbox.run(RunSpec(["./data.txt"], LIMITS))).exit_code == 126


async def test_stdin_env_and_arguments(sandbox: Sandbox) -> None:
    program = "import os, sys; print(sys.stdin.read(), os.environ['A'], sys.argv[1])"
    argv = ["/usr/bin/python3", "-c", program, "argé"]
    evidence = await sandbox.run(RunSpec(argv, LIMITS, env={"A": "b"}, stdin="hé".encode()))
    assert evidence.stdout.decode() == "hé b argé\n"


async def test_node_runs(sandbox: Sandbox) -> None:
    evidence = await sandbox.run(
        RunSpec(["node", "-e", "console.log(1 + 1)"], limits(memory_bytes=256 * MIB))
    )
    assert (evidence.stdout, evidence.stderr, evidence.exit_code) == (b"2\n", b"", 0)


async def test_the_private_channel_goes_both_ways(sandbox: Sandbox) -> None:
    program = (
        "import os; fd = int(os.environ['SANDPIPER_RESULT_FD'])\n"
        "size = int.from_bytes(os.read(fd, 4), 'big')\n"
        "data = b''\nwhile len(data) < size: data += os.read(fd, 1 << 16)\n"
        "os.write(fd, data[::-1])"
    )
    private = bytes(range(256)) * 4096
    spec = RunSpec(["/usr/bin/python3", "-c", program], LIMITS, private_channel=True, private_input=private)
    evidence = await sandbox.run(spec)
    assert evidence.stdout + evidence.stderr == b""
    assert evidence.channel == private[::-1][: len(evidence.channel)]
    assert len(evidence.channel) > 64 << 10


async def test_the_private_channel_is_bounded_and_drained(sandbox: Sandbox) -> None:
    program = "import os\nfd = int(os.environ['SANDPIPER_RESULT_FD'])\n"
    program += "for _ in range(80): os.write(fd, b'x' * 65536)"
    spec = RunSpec(["/usr/bin/python3", "-c", program], LIMITS, private_channel=True)
    evidence = await sandbox.run(spec)
    assert evidence.exit_code == 0
    assert len(evidence.channel) == 4 * MIB


async def test_no_descriptor_but_its_own_reaches_a_program(sandbox: Sandbox) -> None:
    evidence = await python(sandbox, "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))")
    assert evidence.stdout == b"[0, 1, 2, 3]\n"  # 3: the listing itself


async def test_output_keeps_head_and_tail_and_counts_the_rest(sandbox: Sandbox) -> None:
    evidence = await python(sandbox, "print('a' * 5000 + 'b' * 200000 + 'c' * 5000)")
    assert evidence.stdout_bytes == 210001
    assert evidence.stdout_cut
    assert not evidence.stderr_cut
    assert evidence.stdout.startswith(b"a" * 4096)
    assert evidence.stdout.endswith(b"c" * 4095 + b"\n")
    assert f"{210001 - 8192} bytes cut".encode() in evidence.stdout
    assert decide(evidence, LIMITS) == pb.OUTCOME_OK


async def test_wall_time(sandbox: Sandbox) -> None:
    began = time.monotonic()
    evidence = await shell(sandbox, "sleep 60", wall_s=0.5)
    assert decide(evidence, LIMITS) == pb.OUTCOME_WALL_TIMEOUT
    assert time.monotonic() - began < 5
    assert 0.5 <= evidence.wall_s < 3


async def test_cpu_time_of_one_process(sandbox: Sandbox) -> None:
    evidence = await python(sandbox, "while True: pass", cpu_s=0.5, wall_s=30)
    assert decide(evidence, limits(cpu_s=0.5)) == pb.OUTCOME_CPU_TIMEOUT
    assert 0.4 <= evidence.cpu_user_s + evidence.cpu_system_s < 3


async def test_cpu_time_counts_the_whole_tree(sandbox: Sandbox) -> None:
    program = (
        "import os, time\n"
        "def burn():\n"
        "    end = time.process_time() + 0.12\n"
        "    while time.process_time() < end: pass\n"
        "while True:\n"
        "    if os.fork() == 0:\n"
        "        burn(); os._exit(0)\n"
        "    os.wait()\n"
    )
    evidence = await python(sandbox, program, cpu_s=0.6, wall_s=30)
    assert decide(evidence, limits(cpu_s=0.6)) == pb.OUTCOME_CPU_TIMEOUT


async def test_memory(sandbox: Sandbox) -> None:
    evidence = await python(sandbox, "b = bytearray(400 << 20); print('got it')", wall_s=30)
    assert decide(evidence, LIMITS) == pb.OUTCOME_OOM
    assert b"got it" not in evidence.stdout


async def test_memory_within_the_limit_is_given_and_reported(sandbox: Sandbox) -> None:
    evidence = await python(sandbox, "import time; b = bytearray(64 << 20); time.sleep(0.2)")
    assert evidence.exit_code == 0
    assert 60 * MIB < evidence.memory_peak_bytes < 128 * MIB


async def test_processes(sandbox: Sandbox) -> None:
    program = (
        "import os, time\nfor _ in range(200):\n    if os.fork() == 0:\n        time.sleep(30); os._exit(0)\n"
    )
    evidence = await python(sandbox, program)
    assert decide(evidence, LIMITS) == pb.OUTCOME_PIDS_LIMIT
    assert evidence.killed >= LIMITS.pids - 2


async def test_threads_count_as_processes(sandbox: Sandbox) -> None:
    program = (
        "import threading, time\n"
        "for _ in range(200): threading.Thread(target=time.sleep, args=(5,), daemon=True).start()\n"
    )
    evidence = await python(sandbox, program)
    assert b"can't start new thread" in evidence.stderr
    if evidence.source != "rusage":  # without kernel counters, threads that end at once may be missed
        assert decide(evidence, LIMITS) == pb.OUTCOME_PIDS_LIMIT
    assert 0 < evidence.pids_peak <= LIMITS.pids


async def test_as_many_processes_as_allowed(sandbox: Sandbox) -> None:
    program = (
        "import os, time\n"
        "for _ in range(30):\n"
        "    if os.fork() == 0: time.sleep(0.3); os._exit(0)\n"
        "for _ in range(30): os.wait()\n"
        "print('all')\n"
    )
    evidence = await python(sandbox, program)
    assert (evidence.stdout, evidence.exit_code) == (b"all\n", 0), evidence.stderr
    assert evidence.pids_peak in (30, 31)


async def test_workspace_disk(sandbox: Sandbox) -> None:
    evidence = await python(sandbox, "f = open('big', 'wb')\nwhile True: f.write(b'x' * 65536)")
    assert decide(evidence, LIMITS) == pb.OUTCOME_DISK_LIMIT
    assert evidence.disk_bytes > 15 * MIB
    await python(sandbox, "import os; os.unlink('big')")
    evidence = await shell(sandbox, "echo again > small; cat small")
    assert decide(evidence, LIMITS) == pb.OUTCOME_OK


async def test_file_size(sandbox: Sandbox) -> None:
    evidence = await shell(sandbox, "exec head -c 3000000 /dev/zero > big", file_bytes=MIB)
    assert decide(evidence, limits(file_bytes=MIB)) == pb.OUTCOME_DISK_LIMIT


async def test_many_files(sandbox: Sandbox) -> None:
    program = "i = 0\nwhile True:\n    open(str(i), 'w').close(); i += 1"
    evidence = await python(sandbox, program)
    assert decide(evidence, LIMITS) == pb.OUTCOME_DISK_LIMIT


@pytest.mark.parametrize(
    "folder", ["/", "/dev", "/run", "/etc", "/usr", "/opt/sandpiper", "/proc/sys", "/var"]
)
async def test_the_system_is_read_only(sandbox: Sandbox, folder: str) -> None:
    evidence = await shell(sandbox, f": > {folder}/x")
    assert evidence.exit_code != 0


async def test_output_without_end(sandbox: Sandbox) -> None:
    began = time.monotonic()
    evidence = await shell(sandbox, "yes", wall_s=30)
    assert decide(evidence, LIMITS) == pb.OUTCOME_OUTPUT_LIMIT
    assert len(evidence.stdout) < LIMITS.output_bytes + 200
    assert time.monotonic() - began < 10


async def test_a_result_does_not_wait_for_children(sandbox: Sandbox) -> None:
    began = time.monotonic()
    evidence = await shell(sandbox, "sleep 60 & echo done")
    assert (evidence.stdout, evidence.exit_code, evidence.killed) == (b"done\n", 0, 1)
    assert time.monotonic() - began < 3
    evidence = await shell(sandbox, "ps -eo comm= 2>/dev/null || ls /proc | grep -c '^[0-9]'")
    assert b"sleep" not in evidence.stdout


async def test_only_the_workspace_lives_on(sandbox: Sandbox) -> None:
    await shell(
        sandbox, "mkdir -p /tmp/a/b; echo 1 > /tmp/a/b/c; echo 2 > /dev/shm/d; echo 3 > e; chmod 000 /tmp/a"
    )
    evidence = await shell(sandbox, "ls -A /tmp /dev/shm; cat e")
    assert evidence.stdout == b"/dev/shm:\n\n/tmp:\n3\n"


async def test_the_eleventh_run_is_as_fast_as_the_first(sandbox: Sandbox) -> None:
    walls = []
    for _ in range(11):
        began = time.monotonic()
        await shell(sandbox, "true")
        walls.append(time.monotonic() - began)
    assert walls[-1] < 5 * min(walls[0], 0.1) + 0.1


async def test_counters_start_anew_with_each_run(sandbox: Sandbox) -> None:
    await python(sandbox, "while True: pass", cpu_s=0.3)
    await python(sandbox, "b = bytearray(400 << 20)")
    evidence = await shell(sandbox, "true")
    assert decide(evidence, LIMITS) == pb.OUTCOME_OK
    assert (evidence.oom_kills, evidence.pids_denied) == (0, 0)
    assert evidence.cpu_user_s + evidence.cpu_system_s < 0.2
    assert evidence.memory_peak_bytes < 32 * MIB


async def test_snapshot_and_restore_elsewhere(backend: Backend, sandbox: Sandbox) -> None:
    await sandbox.write(
        [FileSpec("pkg/mod.py", b"x = 1\n"), FileSpec("run.sh", b"#!/bin/sh\necho ran\n", 0o755)]
    )
    await shell(
        sandbox,
        "ln -s pkg/mod.py link; mkdir -p empty/deep; printf '\\377' > \"$(printf 'n\\377')\"; rm -f x",
    )
    first = await sandbox.snapshot(LIMITS.disk_bytes, LIMITS.max_files)
    assert await sandbox.snapshot(LIMITS.disk_bytes, LIMITS.max_files) == first
    with tarfile.open(fileobj=io.BytesIO(first)) as archive:
        names = archive.getnames()
    assert names == ["empty", "empty/deep", "link", "n\udcff", "pkg", "pkg/mod.py", "run.sh"]
    other = await backend.create(SandboxSpec("other", LIMITS.disk_bytes))
    try:
        await other.restore(first)
        assert (await shell(other, "./run.sh; cat link; ls -A empty")).stdout == b"ran\nx = 1\ndeep\n"
        assert await other.snapshot(LIMITS.disk_bytes, LIMITS.max_files) == first
    finally:
        await other.destroy()


async def test_keep_restores_only_what_it_names(backend: Backend, sandbox: Sandbox) -> None:
    files = [
        FileSpec("solution.py", b"1"),
        FileSpec("pkg/a.py", b"2"),
        FileSpec("pkg/b.py", b"3"),
        FileSpec("t", b"4"),
    ]
    await sandbox.write(files)
    archive = await sandbox.snapshot(LIMITS.disk_bytes, LIMITS.max_files)
    other = await backend.create(SandboxSpec("keeper", LIMITS.disk_bytes))
    try:
        await other.restore(archive, ["solution.py", "pkg/a.py"])
        assert (await shell(other, "find . -type f | sort")).stdout == b"./pkg/a.py\n./solution.py\n"
    finally:
        await other.destroy()


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", ".", "a//b", "a/./b", "x/"])
async def test_a_bad_path_is_refused_and_the_sandbox_lives(sandbox: Sandbox, path: str) -> None:
    with pytest.raises(Refused) as refused:
        await sandbox.write([FileSpec(path, b"x" * 100_000), FileSpec("never", b"y")])
    assert refused.value.reason == "bad_path"
    assert (await shell(sandbox, "ls -A")).stdout == b""


async def test_writing_replaces_what_a_program_left_there(sandbox: Sandbox) -> None:
    await shell(
        sandbox,
        "mkdir -p solution.py/deep && ln -s /etc/passwd conf && mkdir d && ln -s /tmp d/e && chmod 0 d",
    )
    await sandbox.write(
        [FileSpec("solution.py", b"mine"), FileSpec("conf", b"own"), FileSpec("d/e/f", b"in")]
    )
    evidence = await shell(sandbox, "cat solution.py conf d/e/f; ls /tmp; test -L conf || echo plain")
    assert evidence.stdout == b"mineowninplain\n"


async def test_files_that_do_not_fit_are_refused(sandbox: Sandbox) -> None:
    with pytest.raises(Refused) as refused:
        await sandbox.write([FileSpec("big", bytes(20 * MIB))])
    assert refused.value.reason == "no_space"
    assert sandbox.alive


async def test_a_snapshot_that_is_too_large_is_refused(sandbox: Sandbox) -> None:
    await shell(sandbox, "truncate -s 12M sparse1; cp --sparse=always sparse1 sparse2")
    with pytest.raises(Refused) as refused:
        await sandbox.snapshot(LIMITS.disk_bytes, LIMITS.max_files)
    assert refused.value.reason == "too_big"
    await shell(sandbox, "rm sparse*; i=0; while [ $i -lt 30 ]; do : > $i; i=$((i+1)); done")
    with pytest.raises(Refused):
        await sandbox.snapshot(LIMITS.disk_bytes, 20)
    assert await sandbox.snapshot(LIMITS.disk_bytes, 30)


async def test_an_archive_that_climbs_is_refused(sandbox: Sandbox) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo("../escape")
        entry.size = 1
        archive.addfile(entry, io.BytesIO(b"x"))
    with pytest.raises(Refused) as refused:
        await sandbox.restore(buffer.getvalue())
    assert refused.value.reason == "bad_path"
    assert sandbox.alive


async def test_an_archive_that_lies_about_its_length_is_refused(sandbox: Sandbox) -> None:
    await sandbox.write([FileSpec("a", b"x" * 2000)])
    archive = await sandbox.snapshot(LIMITS.disk_bytes, 100)
    with pytest.raises(Refused) as refused:
        await sandbox.restore(archive[:1024])
    assert refused.value.reason == "bad_archive"


async def test_nothing_runs_as_root_and_each_sandbox_has_its_own_host_uid(
    backend: BubblewrapBackend, sandbox: Sandbox
) -> None:
    before = uids_of(backend.instance)
    other = await backend.create(SandboxSpec("neighbour", LIMITS.disk_bytes))
    run = asyncio.create_task(shell(other, "sleep 0.5"))
    try:
        await asyncio.sleep(0.2)
        uids = uids_of(backend.instance)
        await run
    finally:
        await other.destroy()
    assert 0 not in uids
    if os.geteuid() == 0:
        assert len(uids) == len(before) + 1


async def test_sandboxes_do_not_see_each_other(backend: Backend, sandbox: Sandbox) -> None:
    other = await backend.create(SandboxSpec("neighbour", LIMITS.disk_bytes))
    try:
        await shell(sandbox, "echo secret > /workspace/mine; echo secret > /tmp/mine")
        listing = "ls -A /workspace /tmp /dev/shm; ls /proc | grep -c '^[0-9]'"
        evidence = await shell(other, listing)
        assert b"mine" not in evidence.stdout
        assert int(evidence.stdout.split()[-1]) <= 4
    finally:
        await other.destroy()


async def test_many_at_once(backend: Backend) -> None:
    async def one(number: int) -> bytes:
        made = await backend.create(SandboxSpec(f"many-{number}", LIMITS.disk_bytes))
        try:
            return (await shell(made, f"echo {number} > n; sleep 0.1; cat n", wall_s=60)).stdout
        finally:
            await made.destroy()

    assert await asyncio.gather(*map(one, range(12))) == [f"{number}\n".encode() for number in range(12)]


async def test_destroy_is_legal_at_any_time_and_twice(backend: Backend) -> None:
    made = await backend.create(SandboxSpec("short", LIMITS.disk_bytes))
    run = asyncio.create_task(shell(made, "sleep 30", wall_s=60))
    await asyncio.sleep(0.2)
    await asyncio.gather(made.destroy(), made.destroy())
    await made.destroy()
    assert not made.alive
    with pytest.raises(SandboxError):
        await run
    with pytest.raises(SandboxError):
        await made.snapshot(1, 1)


async def test_a_cancelled_run_ends_the_sandbox(backend: Backend) -> None:
    made = await backend.create(SandboxSpec("cancelled", LIMITS.disk_bytes))
    run = asyncio.create_task(shell(made, "sleep 30", wall_s=60))
    await asyncio.sleep(0.2)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not made.alive
    await made.destroy()


async def test_a_cancelled_create_leaves_nothing(backend: Backend) -> None:
    for pause in (0, 0.003, 0.01, 0.03):
        making = asyncio.create_task(backend.create(SandboxSpec("aborted", LIMITS.disk_bytes)))
        await asyncio.sleep(pause)
        making.cancel()
        try:
            await (await making).destroy()
        except asyncio.CancelledError:
            continue
