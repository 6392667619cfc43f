"""Commands go to live executors, spread by load, and stay where their workspace is."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sandpiper.placement import Placement
from sandpiper.v1.sandbox_pb2 import ExecutorHeartbeat


class ManualClock:
    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


def beat(
    name: str, partitions: list[int], running: int = 0, capacity: int = 4, **more: object
) -> ExecutorHeartbeat:
    return ExecutorHeartbeat(
        executor_id=name, partitions=partitions, running=running, capacity=capacity, **more
    )


def test_nobody_alive_places_nothing() -> None:
    clock = ManualClock()
    placement = Placement(clock, stale_after_s=5)
    assert placement.choose(None) is None
    placement.observe(beat("a", [1]))
    assert placement.choose(None) == 1
    clock.now = 6
    assert placement.choose(None) is None
    assert not placement.available()


def test_draining_and_partitionless_executors_get_nothing() -> None:
    placement = Placement(ManualClock(), 5)
    placement.observe(beat("a", [1], draining=True))
    placement.observe(beat("b", []))
    assert placement.choose(1) is None


def test_an_episode_stays_with_its_partition_until_the_owner_is_gone() -> None:
    clock = ManualClock()
    placement = Placement(clock, 5)
    placement.observe(beat("a", [1], running=4))
    placement.observe(beat("b", [2]))
    assert placement.choose(1) == 1
    clock.now = 4
    placement.observe(beat("b", [1, 2], sent_at=1))
    clock.now = 6
    assert placement.choose(1) == 1  # the partition moved to b with Kafka
    assert placement.choose(7) in (1, 2)


def test_an_older_heartbeat_does_not_replace_a_newer() -> None:
    placement = Placement(ManualClock(), 5)
    placement.observe(beat("a", [1], sent_at=2))
    placement.observe(beat("a", [9], sent_at=1))
    assert placement.choose(None) == 1


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(1, 120))
def test_a_burst_spreads_by_capacity(capacities: list[int], burst: int) -> None:
    placement = Placement(ManualClock(), 5)
    owner = {}
    for index, capacity in enumerate(capacities):
        partitions = [10 * index, 10 * index + 1]
        owner |= dict.fromkeys(partitions, index)
        placement.observe(beat(str(index), partitions, capacity=capacity))
    counts = Counter(owner[placement.choose(None)] for _ in range(burst))  # type: ignore[index]
    loads = [counts[index] / capacity for index, capacity in enumerate(capacities)]
    assert max(loads) - min(loads) <= 1.0 + 1e-9
