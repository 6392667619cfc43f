"""Decides which policy is resident and who may generate with it.

Invariants
* One lane is served at a time; its policy is only replaced by a newer version of the same run while leases
  are out, and between two decode steps.
* Another lane gets the engine when the present one has nothing to do, or has had it for `switch_after_s`
  while the other waited that long; then no lease is granted until those out have ended. Lanes are served
  in the order of their oldest request.
* Every ticket ends exactly once: granted, failed with a typed error, or cancelled by its owner.
* A policy that was refused is not tried again; one that could not be had is, after `RETRY_S`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import structlog

from sandpiper.clock import Clock
from sandpiper.telemetry import metrics
from sandpiper.v1.common_pb2 import PolicyRef
from services.inference.failures import InferenceError, PolicyRefused, PolicyUnavailable
from services.inference.policies.cache import PolicyCache
from services.inference.policies.lanes import Lane, Lanes, Ticket
from services.inference.policies.loader import Loader
from services.inference.policies.registry import Published, Registry

log = structlog.get_logger(__name__)
RETRY_S = 5.0
TICK_S = 0.5
MAX_FAILED = 256


class Scheduler:
    """Runs the loader. `run` must be running for tickets to be served."""

    def __init__(
        self,
        loader: Loader,
        cache: PolicyCache,
        registry: Registry,
        clock: Clock,
        max_leases: int,
        switch_after_s: float,
    ) -> None:
        self.loader = loader
        self._cache = cache
        self._registry = registry
        self._clock = clock
        self._max_leases = max_leases
        self._switch_after_s = switch_after_s
        self._lanes = Lanes()
        self._lane: Lane | None = None
        self._lane_since = 0.0
        self._leases = 0
        self._failed: dict[Published, tuple[float, InferenceError]] = {}
        self._fetches: dict[Published, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def lease(self, ref: PolicyRef) -> AsyncIterator[None]:
        """Hold the policy of a request: inside, `loader.resident` satisfies `ref`. Raises InferenceError."""
        self._registry.learn_from(ref)
        ticket = Ticket.of(ref, self._clock.monotonic())
        self._lanes.add(ticket)
        self._changed.set()
        try:
            await ticket.granted
            yield
        finally:
            self._lanes.remove(ticket)
            if (
                ticket.granted.done()
                and not ticket.granted.cancelled()
                and ticket.granted.exception() is None
            ):
                self._leases -= 1
            self._changed.set()

    def published(self, published: Published) -> None:
        """A policy was announced."""
        if self._registry.announce(published):
            self._changed.set()

    async def run(self) -> None:
        """Serve tickets until cancelled."""
        try:
            while True:
                self._changed.clear()
                await self._advance()
                try:
                    async with asyncio.timeout(TICK_S):
                        await self._changed.wait()
                except TimeoutError:
                    continue
        finally:
            for task in self._fetches.values():
                task.cancel()
            for ticket in self._lanes:
                ticket.granted.cancel()

    async def _advance(self) -> None:
        if self._lane is not None and not self.loader.alive:
            log.error("engine_lost", lane=str(self._lane))
            self._lane = None
        if self._lane is not None:
            await self._upgrade(self._lane)
            self._grant()
        await self._switch()

    async def _upgrade(self, lane: Lane) -> None:
        """Follow the run's newest version, once it is on disk."""
        resident = self.loader.resident
        target = self._target(lane, self._lanes.of(lane))
        if resident is None or target is None or target == resident.local.published:
            return
        if target.version >= resident.version and self._ready(target):
            await self._load(target)

    def _grant(self) -> None:
        resident, waiting = self.loader.resident, self._lanes.of(self._lane)
        if resident is None:
            return
        for ticket in waiting:
            if ticket.accepts(resident.local.published):
                if self._leases < self._max_leases and not self._must_yield():
                    self._leases += 1
                    self._end(ticket, None)
            elif self._target(ticket.lane, [ticket]) is None:
                self._end(ticket, self._why(ticket))

    async def _switch(self) -> None:
        """Give the engine to the lane that has waited longest, if it is free."""
        oldest = self._lanes.oldest_besides(self._lane)
        if oldest is None:
            return
        target = self._target(oldest.lane, self._lanes.of(oldest.lane))
        if target is None:
            for ticket in self._lanes.of(oldest.lane):
                self._end(ticket, self._why(ticket))
            return
        if not self._ready(target) or not self._free():
            return
        if await self._load(target):
            log.info("lane_switched", lane=str(oldest.lane), policy=str(target))
            self._lane, self._lane_since = oldest.lane, self._clock.monotonic()
        self._changed.set()

    def _free(self) -> bool:
        if self._leases:
            return False
        return self._must_yield() or not self._lanes.of(self._lane)

    def _must_yield(self) -> bool:
        """Another lane has waited its time, and this one has had its."""
        oldest = self._lanes.oldest_besides(self._lane)
        if oldest is None:
            return False
        now = self._clock.monotonic()
        return min(now - oldest.since, now - self._lane_since) >= self._switch_after_s

    def _target(self, lane: Lane, tickets: Iterable[Ticket]) -> Published | None:
        """The best version that would serve the lane: the newest known that has not failed."""
        run_id, pinned = lane
        newest = self._registry.newest(run_id) if pinned is None else None
        options = [newest, *(ticket.asked for ticket in tickets)]
        usable = [o for o in options if o is not None and o.uri and not self._has_failed(o)]
        return max(usable, key=lambda option: option.version, default=None)

    def _why(self, ticket: Ticket) -> InferenceError:
        """Why nothing serves this ticket."""
        newest = self._registry.newest(ticket.lane[0])
        for published in (ticket.asked, newest):
            if published is not None and published in self._failed:
                return self._failed[published][1]
        return PolicyUnavailable(
            "missing", f"{ticket.asked}: the request names no manifest and none is known"
        )

    def _has_failed(self, published: Published) -> bool:
        entry = self._failed.get(published)
        if entry is None:
            return False
        since, error = entry
        if not isinstance(error, PolicyRefused) and self._clock.monotonic() - since >= RETRY_S:
            del self._failed[published]
            return False
        return True

    def _ready(self, target: Published) -> bool:
        """True when the policy is on disk; else its download is started."""
        if self._cache.has(target):
            return True
        if target not in self._fetches:
            task = asyncio.create_task(self._fetch(target), name=f"prefetch {target}")
            self._fetches[target] = task
            task.add_done_callback(lambda _: self._fetches.pop(target, None))
        return False

    async def _fetch(self, target: Published) -> None:
        try:
            await self._cache.get(target, self._in_use())
        except InferenceError as error:
            self._note_failure(target, error)
        finally:
            self._changed.set()

    async def _load(self, target: Published) -> bool:
        try:
            await self.loader.load(await self._cache.get(target, self._in_use()))
        except InferenceError as error:
            self._note_failure(target, error)
            return False
        finally:
            self._changed.set()
        return True

    def _in_use(self) -> list[Published]:
        resident = self.loader.resident
        return [resident.local.published] if resident else []

    def _note_failure(self, target: Published, error: InferenceError) -> None:
        log.error("policy_not_served", policy=str(target), reason=error.reason, error=str(error))
        metrics.INFRA_FAILURES.labels("policy", error.reason).inc()
        self._failed[target] = (self._clock.monotonic(), error)
        while len(self._failed) > MAX_FAILED:
            del self._failed[next(iter(self._failed))]

    def _end(self, ticket: Ticket, error: InferenceError | None) -> None:
        self._lanes.remove(ticket)
        if ticket.granted.done():
            if error is None:
                self._leases -= 1
            return
        if error is None:
            ticket.granted.set_result(None)
        else:
            ticket.granted.set_exception(error)
