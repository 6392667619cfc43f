"""One bubblewrap sandbox.

Invariants: a program runs only after it is in its control group; a run's counters are final when it returns,
because nothing of it is alive by then; `destroy` returns when no process, control group or descriptor of the
sandbox is left, and may be called at any time, any number of times.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from services.sandbox_executor.backend.bubblewrap import evidence
from services.sandbox_executor.backend.bubblewrap.link import Link
from services.sandbox_executor.backend.bubblewrap.settings import BubblewrapSettings
from services.sandbox_executor.backend.bubblewrap.spawn import Spawned, only_child
from services.sandbox_executor.backend.cgroup.base import Counters, Group
from services.sandbox_executor.backend.protocol import (
    FileSpec,
    RunEvidence,
    RunSpec,
    SandboxLost,
    SandboxSpec,
)

CHANNEL_BYTES = 4 << 20
_FIRST_LOOK_S, _LOOK_S = 0.02, 0.05


class BubblewrapSandbox:
    """Talks to the supervisor; watches the control group while a program runs."""

    def __init__(
        self,
        spec: SandboxSpec,
        settings: BubblewrapSettings,
        link: Link,
        spawned: Spawned,
        group: Group | None,
        source: str,
        on_end: Callable[[BubblewrapSandbox], None],
    ) -> None:
        self.spec = spec
        self._settings = settings
        self._link = link
        self._spawned = spawned
        self._group = group
        self._source = source
        self._on_end = on_end
        self._ending: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        return self._ending is None and self._link.open

    async def write(self, files: Sequence[FileSpec]) -> None:
        listing = [[file.path, file.mode, len(file.content)] for file in files]
        await self._ask({"op": "write", "files": listing}, b"".join(file.content for file in files))

    async def restore(self, archive: bytes, keep: Sequence[str] = (), *, clear: bool = False) -> None:
        await self._ask({"op": "restore", "keep": list(keep), "clear": clear}, archive)

    async def snapshot(self, max_bytes: int, max_files: int) -> bytes:
        request = {"op": "snapshot", "max_bytes": max_bytes, "max_files": max_files}
        _, archive = await self._ask(request, max_body=max_bytes)
        return archive

    async def run(self, spec: RunSpec) -> RunEvidence:
        limits = spec.limits
        await self._link.send(
            evidence.request(spec, self._settings, gated=self._group is not None), evidence.body(spec)
        )
        if self._group is not None:
            await self._link.recv(self._settings.answer_timeout_s)
            await self._admit(self._group, spec)
        watch = asyncio.create_task(self._watch(self._group, spec)) if self._group else None
        try:
            most = 2 * (limits.output_bytes + 256) + CHANNEL_BYTES
            report, body = await self._link.recv(limits.wall_s + self._settings.answer_timeout_s, most)
        finally:
            if watch:
                watch.cancel()
                with contextlib.suppress(asyncio.CancelledError, SandboxLost):
                    await watch
        counters = await asyncio.to_thread(self._group.counters) if self._group else None
        return evidence.from_report(report, body, counters, spec.limits, self._source)

    async def destroy(self) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        self._link.close()
        await asyncio.to_thread(self._spawned.end)
        if self._group is not None:
            await asyncio.to_thread(self._group.remove)
        self._on_end(self)

    async def _ask(
        self, header: dict[str, Any], body: bytes = b"", max_body: int = 0
    ) -> tuple[dict[str, Any], bytes]:
        await self._link.send(header, body)
        return await self._link.recv(self._settings.answer_timeout_s, max_body)

    async def _admit(self, group: Group, spec: RunSpec) -> None:
        """Put the waiting program into its group, then let it go."""
        try:
            await asyncio.to_thread(self._place, group, spec)
        except OSError as error:
            self._link.close()
            raise SandboxLost(
                "cgroup", f"the program could not be put into its control group: {error}"
            ) from error
        await self._link.send({"op": "go"})

    def _place(self, group: Group, spec: RunSpec) -> None:
        group.begin(
            evidence.group_memory(spec.limits, self.spec.disk_bytes, self._settings), spec.limits.pids
        )
        group.place(only_child(self._spawned.pid))

    async def _watch(self, group: Group, spec: RunSpec) -> None:
        """Look at the kernel's counters now and then; ask the supervisor to end the run when one is over."""
        pause = _FIRST_LOOK_S
        while True:
            await asyncio.sleep(pause)
            counters: Counters = await asyncio.to_thread(group.counters)
            stop = evidence.exceeded(counters, spec.limits)
            if stop:
                await self._link.send({"op": "stop", "stop": stop})
                return
            pause = _LOOK_S
