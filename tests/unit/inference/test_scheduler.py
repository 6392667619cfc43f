"""Which policy is resident when, and who may use it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sandpiper.v1.common_pb2 import Blob, PolicyRef
from services.inference.failures import InferenceError, PolicyRefused, PolicyUnavailable
from services.inference.policies.cache import PolicyCache
from services.inference.policies.loader import Loader
from services.inference.policies.registry import Published, Registry
from services.inference.policies.scheduler import RETRY_S, Scheduler


class ManualClock:
    """Stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


class FakeCache:
    """Everything is fetched at the next turn of the loop; `broken` says what fails and how."""

    def __init__(self) -> None:
        self.here: set[Published] = set()
        self.broken: dict[Published, InferenceError] = {}
        self.fetched: list[int] = []

    def has(self, published: Published) -> bool:
        return published in self.here

    async def get(self, published: Published, in_use: Collection[Published] = ()) -> Any:
        await asyncio.sleep(0)
        if published in self.broken:
            raise self.broken[published]
        if published not in self.here:
            self.fetched.append(published.version)
        self.here.add(published)
        return published


class FakeLoader:
    """Loads in no time; `broken` says what is refused."""

    def __init__(self) -> None:
        self.resident: Any = None
        self.alive = False
        self.loads: list[Published] = []
        self.broken: dict[Published, InferenceError] = {}

    async def load(self, published: Published) -> None:
        await asyncio.sleep(0)
        if published in self.broken:
            raise self.broken[published]
        self.loads.append(published)
        self.resident = SimpleNamespace(local=SimpleNamespace(published=published), version=published.version)
        self.alive = True


@dataclass
class Bench:
    scheduler: Scheduler
    loader: FakeLoader
    cache: FakeCache
    clock: ManualClock

    @property
    def resident(self) -> Published:
        return cast(Published, self.loader.resident.local.published)

    @asynccontextmanager
    async def lease(self, run: str, version: int, pinned: bool = False) -> AsyncIterator[None]:
        async with asyncio.timeout(5), self.scheduler.lease(ref(run, version, pinned)):
            yield

    def waiting(self, run: str, version: int, pinned: bool = False) -> asyncio.Task[Published]:
        """A task that leases, and returns what was resident."""

        async def use() -> Published:
            async with self.lease(run, version, pinned):
                return self.resident

        return asyncio.create_task(use())

    async def settle(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)


def some(version: int, run: str = "a") -> Published:
    return Published.of(run, version, Blob(uri=f"s3://b/{run}/{version}", sha256=f"{run}{version}"))


def ref(run: str, version: int, pinned: bool = False) -> PolicyRef:
    return PolicyRef(run_id=run, version=version, pinned=pinned, manifest=some(version, run).blob())


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    loader, cache, clock = FakeLoader(), FakeCache(), ManualClock()
    scheduler = Scheduler(
        cast(Loader, loader), cast(PolicyCache, cache), Registry(), clock, max_leases=3, switch_after_s=10
    )
    task = asyncio.create_task(scheduler.run())
    yield Bench(scheduler, loader, cache, clock)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_follows_the_newest_version(bench: Bench) -> None:
    bench.scheduler.published(some(4))
    async with bench.lease("a", 2):
        assert bench.resident == some(4)
        bench.scheduler.published(some(5))
        await bench.settle()
        assert bench.resident == some(5)
    assert await bench.waiting("a", 5) == some(5)
    assert bench.loader.loads == [some(4), some(5)]


async def test_a_request_that_knows_more_than_the_topic_gets_it(bench: Bench) -> None:
    bench.scheduler.published(some(1))
    async with bench.lease("a", 1):
        assert await bench.waiting("a", 6) == some(6)


async def test_pinned_gets_exactly_its_version_and_keeps_it(bench: Bench) -> None:
    bench.scheduler.published(some(9))
    async with bench.lease("a", 2, pinned=True):
        assert bench.resident == some(2)
        bench.scheduler.published(some(10))
        await bench.settle()
        assert bench.resident == some(2)
    assert await bench.waiting("a", 2) == some(10)


async def test_switches_only_when_the_lane_is_empty(bench: Bench) -> None:
    async with bench.lease("a", 1):
        other = bench.waiting("b", 1)
        await bench.settle()
        assert not other.done()
        assert await bench.waiting("a", 1) == some(1)  # the lane goes on while there is time
    assert await other == some(1, "b")


async def test_a_busy_lane_yields_after_its_time(bench: Bench) -> None:
    async with bench.lease("a", 1):
        other = bench.waiting("b", 1)
        await bench.settle()
        bench.clock.now += 10.1
        late = bench.waiting("a", 1)
        await bench.settle()
        assert not late.done()
    assert await other == some(1, "b")
    assert await late == some(1)
    assert [p.run_id for p in bench.loader.loads] == ["a", "b", "a"]


async def test_lanes_take_turns_by_their_oldest_request(bench: Bench) -> None:
    async with bench.lease("a", 1):
        tasks = []
        for run in ("c", "b", "d"):
            tasks.append(bench.waiting(run, 1))
            await bench.settle()
            bench.clock.now += 1
    await asyncio.gather(*tasks)
    assert [p.run_id for p in bench.loader.loads] == ["a", "c", "b", "d"]


async def test_no_more_leases_than_the_engine_takes(bench: Bench) -> None:
    release, inside, most = asyncio.Event(), 0, 0

    async def use() -> None:
        nonlocal inside, most
        async with bench.lease("a", 1):
            inside += 1
            most = max(most, inside)
            await release.wait()
            inside -= 1

    tasks = [asyncio.create_task(use()) for _ in range(8)]
    await bench.settle()
    assert inside == 3
    release.set()
    await asyncio.gather(*tasks)
    assert most == 3


async def test_refused_version_fails_who_needs_it_and_no_one_else(bench: Bench) -> None:
    bench.loader.broken[some(2)] = PolicyRefused("probe_mismatch", "no")
    assert await bench.waiting("a", 1) == some(1)
    bench.scheduler.published(some(2))
    await bench.settle()
    assert await bench.waiting("a", 1) == some(1)
    with pytest.raises(PolicyRefused, match="no"):
        await bench.waiting("a", 2)
    with pytest.raises(PolicyRefused):
        await bench.waiting("a", 2, pinned=True)
    bench.scheduler.published(some(3))
    assert await bench.waiting("a", 2) == some(3)


async def test_refused_newest_falls_back_to_what_the_request_names(bench: Bench) -> None:
    bench.loader.broken[some(5)] = PolicyRefused("probe_mismatch", "no")
    bench.scheduler.published(some(5))
    assert await bench.waiting("a", 4) == some(4)


async def test_what_could_not_be_had_is_tried_again_later(bench: Bench) -> None:
    bench.cache.broken[some(1)] = PolicyUnavailable("unavailable", "store away")
    for _ in range(2):
        with pytest.raises(PolicyUnavailable):
            await bench.waiting("a", 1)
    bench.cache.broken.clear()
    with pytest.raises(PolicyUnavailable):
        await bench.waiting("a", 1)
    bench.clock.now += RETRY_S
    assert await bench.waiting("a", 1) == some(1)


async def test_a_request_that_names_nothing_fails_typed(bench: Bench) -> None:
    with pytest.raises(PolicyUnavailable, match="no manifest"):
        async with bench.scheduler.lease(PolicyRef(run_id="a", version=1)):
            pass


async def test_a_lost_engine_is_loaded_again(bench: Bench) -> None:
    async with bench.lease("a", 1):
        bench.loader.alive = False
    assert await bench.waiting("a", 1) == some(1)
    assert bench.loader.loads == [some(1), some(1)]


async def test_cancelled_tickets_leak_nothing(bench: Bench) -> None:
    async with bench.lease("a", 1):
        for _ in range(20):
            task = bench.waiting("b", 1)
            await asyncio.sleep(0)
            task.cancel()
        for steps in range(12):  # at every point around the grant
            task = bench.waiting("a", 1)
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    assert await bench.waiting("b", 1) == some(1, "b")
    assert bench.scheduler._leases == 0
    assert len(bench.scheduler._lanes) == 0


@pytest.mark.parametrize("seed", range(5))
async def test_any_mix_of_requests_is_served_right(bench: Bench, seed: int) -> None:
    """Random runs, versions, pins, publications, cancellations and passing time."""
    rng = random.Random(seed)
    inside: list[tuple[str, int, bool]] = []
    served = 0

    async def use(run: str, version: int, pinned: bool) -> None:
        nonlocal served
        async with bench.lease(run, version, pinned):
            inside.append((run, version, pinned))
            try:
                for _ in range(rng.randrange(6)):
                    assert len(inside) <= 3
                    assert len({(r, v if p else None) for r, v, p in inside}) == 1
                    now = bench.resident
                    assert now.run_id == run
                    assert now.version == version if pinned else now.version >= version
                    await asyncio.sleep(0)
                served += 1
            finally:
                inside.remove((run, version, pinned))

    tasks = []
    for _ in range(150):
        run, version = rng.choice("abc"), rng.randrange(4)
        tasks.append(asyncio.create_task(use(run, version, rng.random() < 0.3)))
        bench.clock.now += rng.random() * 4
        if rng.random() < 0.2:
            bench.scheduler.published(some(rng.randrange(6), rng.choice("abc")))
        if rng.random() < 0.2:
            rng.choice(tasks).cancel()
        if rng.random() < 0.05:
            bench.loader.alive = False
        await asyncio.sleep(0)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    failures = [r for r in results if isinstance(r, Exception)]
    assert failures == []
    assert served + sum(isinstance(r, asyncio.CancelledError) for r in results) == 150
    assert bench.scheduler._leases == 0
