"""The bubblewrap backend: makes sandboxes, remembers them all, leaves nothing behind.

Invariants: whatever was started is registered before it can fail, and is destroyed on every error path; a
host uid belongs to one live sandbox; `start` returns only after a probe sandbox showed the isolation that is
reported.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import shutil
import socket
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from services.sandbox_executor.backend import reaper
from services.sandbox_executor.backend.bubblewrap import argv, probe
from services.sandbox_executor.backend.bubblewrap.link import Link
from services.sandbox_executor.backend.bubblewrap.sandbox import BubblewrapSandbox
from services.sandbox_executor.backend.bubblewrap.seccomp import filter_program
from services.sandbox_executor.backend.bubblewrap.settings import BubblewrapSettings
from services.sandbox_executor.backend.bubblewrap.spawn import Spawned, complaint, spawn
from services.sandbox_executor.backend.bubblewrap.system import System, prepare
from services.sandbox_executor.backend.cgroup import GroupTree, find_tree
from services.sandbox_executor.backend.protocol import CreateFailed, SandboxError, SandboxSpec


class BubblewrapBackend:
    """`folder` is a place that every uid can reach; the backend makes one folder of its own in it."""

    name = "bubblewrap"

    def __init__(self, settings: BubblewrapSettings, runners: Path, folder: Path) -> None:
        self.instance = reaper.instance_name()
        self._settings = settings
        self._runners = runners
        self._folder = folder
        self._spawner = ThreadPoolExecutor(1, thread_name_prefix="sandbox-spawner")
        self._live: set[BubblewrapSandbox] = set()
        self._uids = deque(range(settings.uid_base, settings.uid_base + settings.uid_count))
        self._serial = itertools.count()
        self._seccomp: bytes | None = None
        self._system: System | None = None
        self._groups: GroupTree | None = None
        self._proven: tuple[str, ...] = ()

    @property
    def isolation(self) -> Sequence[str]:
        return self._proven

    @property
    def languages(self) -> Sequence[str]:
        """Languages whose interpreter a sandbox has."""
        return self._system.languages if self._system else ()

    async def start(self) -> None:
        await self.reap()
        await asyncio.to_thread(self._prepare)
        sandbox = await self.create(SandboxSpec("probe", 4 << 20))
        try:
            self._proven = await probe.prove(sandbox, self._groups.version if self._groups else "rlimits")
        finally:
            await sandbox.destroy()

    def _prepare(self) -> None:
        home = self._folder / self.instance
        home.mkdir(parents=True)
        home.chmod(0o755)
        self._system = prepare(self._settings, self._runners, home)
        if self._settings.cgroup != "off":
            self._groups = find_tree(self.instance)
        if self._settings.cgroup == "require" and self._groups is None:
            raise CreateFailed(
                "no_cgroup", "no writable control groups (memory, pids, cpu accounting) on this host"
            )
        self._seccomp = filter_program(memory_files=self._groups is not None)

    async def create(self, spec: SandboxSpec) -> BubblewrapSandbox:
        if self._system is None:
            raise CreateFailed("not_started", "the backend was not started")
        uid = self._take_uid()
        try:
            sandbox = await self._create(spec, self._system, uid)
        except BaseException:
            self._give_uid(uid)
            raise
        self._live.add(sandbox)
        return sandbox

    async def _create(self, spec: SandboxSpec, system: System, uid: int | None) -> BubblewrapSandbox:
        serial = next(self._serial)
        marker = f"{self.instance}/{serial}/{spec.sandbox_id}"
        build = partial(_argv, self._settings, system, spec.disk_bytes, marker)
        start = partial(spawn, build, self._seccomp, uid, self._settings.create_timeout_s)
        # Shielded: a cancelled create must still learn of the process that its thread started.
        starting = asyncio.get_running_loop().run_in_executor(self._spawner, start)
        try:
            spawned, sock = await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(_abandon)
            raise
        return await self._greet(spec, spawned, sock, uid, f"{serial}-{_slug(spec.sandbox_id)}")

    async def _greet(
        self, spec: SandboxSpec, spawned: Spawned, sock: socket.socket, uid: int | None, name: str
    ) -> BubblewrapSandbox:
        try:
            link = await Link.over(sock)
        except BaseException:
            sock.close()
            await asyncio.shield(asyncio.to_thread(spawned.end))
            raise
        try:
            await link.recv(self._settings.create_timeout_s)
            group = await asyncio.to_thread(self._groups.create, name) if self._groups else None
        except (SandboxError, OSError) as error:
            link.close()
            said = await asyncio.to_thread(complaint, spawned.bwrap)
            await asyncio.to_thread(spawned.end)
            raise CreateFailed("no_supervisor", f"{error}; {said}") from error
        except BaseException:
            link.close()
            await asyncio.shield(asyncio.to_thread(spawned.end))
            raise
        source = self._groups.version if self._groups else "rusage"
        return BubblewrapSandbox(
            spec, self._settings, link, spawned, group, source, on_end=partial(self._forget, uid)
        )

    def _forget(self, uid: int | None, sandbox: BubblewrapSandbox) -> None:
        self._live.discard(sandbox)
        self._give_uid(uid)

    def _take_uid(self) -> int | None:
        if os.geteuid() != 0:
            return None
        if not self._uids:
            raise CreateFailed("no_uid", "every host uid for sandboxes is in use")
        return self._uids.popleft()

    def _give_uid(self, uid: int | None) -> None:
        if uid is not None:
            self._uids.append(uid)

    async def reap(self) -> int:
        return await asyncio.to_thread(self._reap)

    def _reap(self) -> int:
        tree = self._groups
        if tree is None and self._settings.cgroup != "off":
            tree = find_tree(self.instance)
        return reaper.reap(self.instance, tree, self._folder)

    async def stop(self) -> None:
        await asyncio.gather(*(sandbox.destroy() for sandbox in list(self._live)), return_exceptions=True)
        await asyncio.to_thread(self._spawner.shutdown)
        if self._groups is not None:
            await asyncio.to_thread(self._groups.clear, self.instance)
        await asyncio.to_thread(self._remove_folders)

    def _remove_folders(self) -> None:
        shutil.rmtree(self._folder / self.instance, ignore_errors=True)
        with contextlib.suppress(OSError):
            self._folder.rmdir()  # unless another executor uses it


def _argv(
    settings: BubblewrapSettings, system: System, disk_bytes: int, marker: str, descriptors: argv.Descriptors
) -> list[str]:
    return argv.build(settings, system, descriptors, disk_bytes, marker)


def _abandon(starting: asyncio.Future[tuple[Spawned, socket.socket]]) -> None:
    if starting.cancelled() or starting.exception() is not None:
        return
    spawned, sock = starting.result()
    sock.close()
    spawned.end()


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:60]
