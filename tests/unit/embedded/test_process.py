"""Real child processes: ended with their parent, with what they started, and within their grace."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from sandpiper.embedded import reaper
from sandpiper.embedded.process import Child, Command, tail

TOKEN = "test-token-" + os.urandom(4).hex()
SLEEP = "import time; time.sleep(60)"


def command(tmp_path: Path, code: str, name: str = "child", grace_s: float = 5.0) -> Command:
    env = {"PATH": os.environ["PATH"]}
    return Command(name, [sys.executable, "-c", code], env, tmp_path / f"{name}.log", grace_s=grace_s)


async def until_logged(path: Path, text: str) -> None:
    async with asyncio.timeout(20):
        while not path.exists() or text not in path.read_text():
            await asyncio.sleep(0.02)


async def test_exit_status_and_log(tmp_path: Path) -> None:
    child = Child.spawn(
        command(tmp_path, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"), TOKEN
    )
    assert await child.wait() == 7
    assert not child.running
    assert sorted(tail(tmp_path / "child.log").split()) == ["err", "out"]


async def test_stop_is_graceful_first(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(15, lambda *_: (print('bye'), sys.exit(0)))\n"
        "print('up', flush=True); time.sleep(60)"
    )
    child = Child.spawn(command(tmp_path, code), TOKEN)
    await until_logged(tmp_path / "child.log", "up")
    await child.stop()
    assert await child.wait() == 0
    assert "bye" in tail(tmp_path / "child.log")


async def test_stop_kills_what_will_not_end_within_its_grace(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    child = Child.spawn(command(tmp_path, code, grace_s=0.3), TOKEN)
    await until_logged(tmp_path / "child.log", "up")
    began = time.monotonic()
    await child.stop()
    assert await child.wait() == -signal.SIGKILL
    assert time.monotonic() - began < 5


async def test_stop_reaches_grandchildren_in_sessions_of_their_own(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True)\n"
        "print('up', flush=True); time.sleep(60)"
    )
    child = Child.spawn(command(tmp_path, code, grace_s=0.3), TOKEN)
    other = Child.spawn(command(tmp_path, SLEEP, name="other"), TOKEN)
    await until_logged(tmp_path / "child.log", "up")
    assert len(list(reaper.marked(TOKEN, "child"))) == 2
    await child.stop()
    assert list(reaper.marked(TOKEN, "child")) == []
    assert other.running, "a neighbour must not be touched"
    await other.stop(0.0)
    assert list(reaper.marked(TOKEN)) == []


@pytest.mark.parametrize("ignore_signals", [False, True])
def test_children_end_when_their_parent_is_killed(tmp_path: Path, ignore_signals: bool) -> None:
    """The parent is a process of its own here, killed without any chance to clean up."""
    token = f"{TOKEN}-{ignore_signals}"
    ignore = "import signal; signal.signal(15, signal.SIG_IGN)" if ignore_signals else "pass"
    guard = [
        sys.executable,
        "-I",
        "-S",
        reaper.__file__,
        token,
        f"{tmp_path}/temp",
        f"{tmp_path}/state",
        "--grace=0.5",
    ]
    child = [sys.executable, "-c", f"{ignore}; print('up', flush=True); {SLEEP}"]
    parent_code = f"""
import asyncio, subprocess, sys
from pathlib import Path
from sandpiper.embedded import reaper
from sandpiper.embedded.process import Child, Command
async def main():
    guardian = subprocess.Popen({guard!r}, stdin=subprocess.PIPE, start_new_session=True)
    child = Child.spawn(Command("c", {child!r}, {{}}, Path({str(tmp_path / "c.log")!r})), {token!r})
    print(guardian.pid, flush=True)
    await child.wait()
asyncio.run(main())
"""
    (tmp_path / "temp").mkdir()
    (tmp_path / "state").touch()
    parent = subprocess.Popen([sys.executable, "-c", parent_code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    guardian = int(parent.stdout.readline())
    while "up" not in tail(tmp_path / "c.log"):
        time.sleep(0.02)
    assert len(list(reaper.marked(token))) == 1
    parent.kill()
    parent.communicate()
    ends = time.monotonic() + 10
    while reaper.start_ticks(guardian) is not None and time.monotonic() < ends:
        time.sleep(0.02)
    assert reaper.start_ticks(guardian) is None
    assert list(reaper.marked(token)) == []
    assert not (tmp_path / "temp").exists()
    assert not (tmp_path / "state").exists()


def test_a_dismissed_guardian_touches_nothing(tmp_path: Path) -> None:
    (tmp_path / "temp").mkdir()
    arguments = [TOKEN, str(tmp_path / "temp"), str(tmp_path / "state")]
    subprocess.run(
        [sys.executable, "-I", "-S", reaper.__file__, *arguments], input=reaper.DONE, check=True, timeout=10
    )
    assert (tmp_path / "temp").exists()


async def test_only_marked_processes_are_signalled(tmp_path: Path) -> None:
    stranger = subprocess.Popen(
        [sys.executable, "-c", SLEEP],
        env={"NOTE": f"{reaper.MARK}={TOKEN}/x", reaper.MARK: f"{TOKEN}-longer/x"},
    )
    try:
        assert reaper.end_marked(TOKEN, 0.0)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has anything to give up")
async def test_programs_that_refuse_root_do_not_see_it_yet_reach_roots_files(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir(mode=0o700)
    code = f"import os; open({str(tmp_path / 'private' / 'x')!r}, 'w'); print(os.geteuid())"
    argv = [sys.executable, "-c", code]
    child = Child.spawn(
        Command(
            "unroot", argv, {}, tmp_path / "unroot.log", not_root="nobody", needs=(tmp_path / "private",)
        ),
        TOKEN,
    )
    assert await child.wait() == 0, tail(tmp_path / "unroot.log")
    assert tail(tmp_path / "unroot.log") != "0"


def test_identity_of_a_process() -> None:
    ticks = reaper.start_ticks(os.getpid())
    assert ticks is not None
    assert ticks == reaper.start_ticks(os.getpid())
    ended = subprocess.Popen([sys.executable, "-c", ""])
    time.sleep(0.3)
    while (Path(f"/proc/{ended.pid}/stat").read_text().rpartition(")")[2].split()[0]) != "Z":
        time.sleep(0.02)
    assert reaper.start_ticks(ended.pid) is None, "a zombie is gone"
    ended.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has anything to give up")
@pytest.mark.parametrize("reachable", [True, False])
def test_where_user_namespaces_are_forbidden_another_user_runs_it(tmp_path: Path, reachable: bool) -> None:
    folder = Path(tempfile.mkdtemp(prefix="shim-test-", dir="/var/tmp"))
    try:
        needed = folder / "a" / "needed"
        needed.mkdir(parents=True)
        folder.chmod(0o711)
        (folder / "a").chmod(0o711 if reachable else 0o700)
        shim = Path(reaper.__file__).with_name("shim.py")
        forbidden = (
            f"import runpy; main = runpy.run_path({str(shim)!r})['main']\n"
            "main.__globals__['_enter_user_namespace'] = lambda _: False\n"
            "main()"
        )
        arguments = [f"--parent={os.getpid()}", "--death-signal=15", "--not-root=nobody", f"--needs={needed}"]
        result = subprocess.run(
            [sys.executable, "-c", forbidden, *arguments, "--", "/usr/bin/id", "-un"],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        if reachable:
            assert (result.returncode, result.stdout) == (0, "nobody\n"), result.stderr
            assert needed.owner() == "nobody"
        else:
            assert result.returncode != 0
            assert f"user nobody cannot reach {needed}" in result.stderr
    finally:
        shutil.rmtree(folder)
