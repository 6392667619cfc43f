"""Live sandboxes by id.

Invariants: one command at a time has a sandbox; a sandbox whose use failed or was cancelled is destroyed,
never handed out again; an idle one lives at most `lease_s`; above `max_live` the least recently used idle one
goes; after `close` none is left.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog

from sandpiper.clock import Clock
from sandpiper.telemetry import metrics
from services.sandbox_executor.backend.protocol import Backend, Sandbox, SandboxSpec

log = structlog.get_logger(__name__)

EMPTY = ""
"""State of a workspace that nothing was written to."""


@dataclass
class Lease:
    """A sandbox id and what lives under it. `state` is the digest of the snapshot that the workspace equals,
    EMPTY for a fresh one, None when it is not known.
    """

    sandbox_id: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    sandbox: Sandbox | None = None
    state: str | None = None
    used_at: float = 0.0
    waiting: int = 0

    def matches(self, state: str, disk_bytes: int) -> bool:
        """Whether the live workspace is the wanted one."""
        live = self.sandbox is not None and self.sandbox.alive
        return (
            live
            and self.state == state
            and self.sandbox is not None
            and self.sandbox.spec.disk_bytes == disk_bytes
        )


class Leases:
    """All leases of this executor."""

    def __init__(self, backend: Backend, clock: Clock, lease_s: float, max_live: int) -> None:
        self._backend = backend
        self._clock = clock
        self._lease_s = lease_s
        self._max_live = max_live
        self._leases: OrderedDict[str, Lease] = OrderedDict()
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def live(self) -> int:
        """Sandboxes alive under a lease."""
        return sum(lease.sandbox is not None for lease in self._leases.values())

    @asynccontextmanager
    async def hold(self, sandbox_id: str) -> AsyncIterator[Lease]:
        """Have the lease alone. An exception inside destroys its sandbox."""
        lease = self._leases.setdefault(sandbox_id, Lease(sandbox_id))
        self._leases.move_to_end(sandbox_id)
        lease.waiting += 1
        try:
            async with lease.lock:
                try:
                    yield lease
                except BaseException:
                    self.discard(lease)
                    raise
        finally:
            lease.waiting -= 1
            lease.used_at = self._clock.monotonic()
            self._forget_if_empty(lease)
            self._trim()

    async def create(self, lease: Lease, disk_bytes: int) -> Sandbox:
        """A fresh sandbox under the lease, in place of the one it had."""
        self.discard(lease)
        with metrics.SANDBOX_CREATE_SECONDS.time():
            lease.sandbox = await self._backend.create(SandboxSpec(lease.sandbox_id, disk_bytes))
        lease.state = EMPTY
        metrics.SANDBOXES.set(self.live)
        return lease.sandbox

    def discard(self, lease: Lease) -> None:
        """Destroy the lease's sandbox in the background; the id is free for a new one at once."""
        sandbox, lease.sandbox, lease.state = lease.sandbox, None, None
        if sandbox is not None:
            task = asyncio.create_task(self._destroy(sandbox))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            metrics.SANDBOXES.set(self.live)

    async def sweep(self) -> None:
        """Destroy what has been idle for too long."""
        now = self._clock.monotonic()
        for lease in list(self._leases.values()):
            if not lease.waiting and now - lease.used_at > self._lease_s:
                self.discard(lease)
                self._forget_if_empty(lease)
        await asyncio.sleep(0)

    async def close(self) -> None:
        """Destroy all."""
        for lease in list(self._leases.values()):
            self.discard(lease)
        self._leases.clear()
        if self._ending:
            await asyncio.wait(self._ending, timeout=15)

    def _trim(self) -> None:
        excess = self.live - self._max_live
        for lease in list(self._leases.values()):
            if excess <= 0:
                return
            if not lease.waiting and lease.sandbox is not None:
                self.discard(lease)
                self._forget_if_empty(lease)
                excess -= 1

    def _forget_if_empty(self, lease: Lease) -> None:
        if lease.sandbox is None and not lease.waiting:
            self._leases.pop(lease.sandbox_id, None)

    async def _destroy(self, sandbox: Sandbox) -> None:
        try:
            await sandbox.destroy()
        except (OSError, TimeoutError) as error:
            log.error("sandbox.destroy_failed", sandbox_id=sandbox.spec.sandbox_id, error=str(error))
