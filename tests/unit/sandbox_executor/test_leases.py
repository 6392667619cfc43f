"""Leases: one user at a time, nothing forgotten."""

from __future__ import annotations

import asyncio

import pytest

from services.sandbox_executor.backend.protocol import CreateFailed
from services.sandbox_executor.leases import EMPTY, Leases
from tests.unit.sandbox_executor.executor_fakes import FakeBackend, FakeClock

MIB = 1 << 20


def make(max_live: int = 4) -> tuple[Leases, FakeBackend, FakeClock]:
    backend, clock = FakeBackend(), FakeClock()
    return Leases(backend, clock, lease_s=100, max_live=max_live), backend, clock


async def use(leases: Leases, sandbox_id: str) -> None:
    async with leases.hold(sandbox_id) as lease:
        if lease.sandbox is None:
            await leases.create(lease, MIB)


async def test_one_at_a_time() -> None:
    leases, _, _ = make()
    order: list[str] = []

    async def worker(name: str) -> None:
        async with leases.hold("a"):
            order.append(f"{name} in")
            await asyncio.sleep(0)
            order.append(f"{name} out")

    await asyncio.gather(worker("1"), worker("2"), worker("3"))
    assert order == ["1 in", "1 out", "2 in", "2 out", "3 in", "3 out"]
    assert leases.live == 0


async def test_a_sandbox_lives_on_between_uses() -> None:
    leases, backend, _ = make()
    await use(leases, "a")
    await use(leases, "a")
    assert (len(backend.made), leases.live) == (1, 1)
    async with leases.hold("a") as lease:
        assert lease.matches(EMPTY, MIB)
        assert not lease.matches(EMPTY, 2 * MIB)
        assert not lease.matches("other", MIB)


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError])
async def test_a_failed_use_destroys_it(error: type[BaseException]) -> None:
    leases, backend, _ = make()
    await use(leases, "a")
    with pytest.raises(error):
        async with leases.hold("a"):
            raise error
    await leases.close()
    assert backend.destroyed == ["a"]


async def test_an_idle_one_expires_and_a_used_one_does_not() -> None:
    leases, backend, clock = make()
    await use(leases, "a")
    async with leases.hold("b") as lease:
        await leases.create(lease, MIB)
        clock.now += 101
        await leases.sweep()
        assert (backend.destroyed, leases.live) == (["a"], 1)
        assert lease.sandbox is not None


async def test_the_least_recently_used_idle_one_makes_room() -> None:
    leases, backend, _ = make(max_live=2)
    for name in ("a", "b", "a", "c"):
        await use(leases, name)
    await asyncio.sleep(0)
    assert (backend.destroyed, leases.live) == (["b"], 2)


async def test_a_create_that_fails_leaves_nothing() -> None:
    leases, backend, _ = make()
    backend.failures["create"] = [CreateFailed("x", "y")]
    with pytest.raises(CreateFailed):
        await use(leases, "a")
    assert (leases.live, len(leases._leases)) == (0, 0)


async def test_close_destroys_all() -> None:
    leases, backend, _ = make()
    await use(leases, "a")
    await use(leases, "b")
    await leases.close()
    assert sorted(backend.destroyed) == ["a", "b"]
    assert leases.live == 0
