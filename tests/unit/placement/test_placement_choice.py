"""Placement: only live owners, sticky, least loaded, counting what was sent."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sandpiper.placement import Placement
from sandpiper.v1.sandbox_pb2 import ExecutorHeartbeat

STALE_S = 5.0


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


def beat(name: str, partitions: list[int], at: float, **more: object) -> ExecutorHeartbeat:
    fields = {"capacity": 4, "running": 0, "queued": 0} | more
    return ExecutorHeartbeat(executor_id=name, partitions=partitions, sent_at=at, **fields)  # type: ignore[arg-type]


def test_nobody_alive_gives_none() -> None:
    clock = FakeClock()
    placement = Placement(clock, STALE_S)
    assert placement.choose(None) is None
    placement.observe(beat("a", [1], clock.now))
    assert placement.choose(None) == 1
    clock.now += STALE_S + 0.1
    assert placement.choose(None) is None
    assert placement.choose(1) is None


def test_sticks_while_anyone_owns_the_partition_and_moves_when_not() -> None:
    clock = FakeClock()
    placement = Placement(clock, STALE_S)
    placement.observe(beat("a", [1], clock.now, running=4))
    placement.observe(beat("b", [2], clock.now))
    assert placement.choose(1) == 1
    assert placement.choose(7) == 2
    placement.observe(beat("a", [], clock.now + 1))
    assert placement.choose(1) == 2


def test_draining_and_useless_executors_are_not_chosen() -> None:
    clock = FakeClock()
    placement = Placement(clock, STALE_S)
    placement.observe(beat("a", [1], clock.now, draining=True))
    placement.observe(beat("b", [2], clock.now, capacity=0))
    placement.observe(beat("c", [], clock.now))
    assert placement.choose(None) is None
    assert placement.choose(1) is None


def test_older_heartbeats_and_older_claims_lose() -> None:
    clock = FakeClock()
    placement = Placement(clock, STALE_S)
    placement.observe(beat("a", [1], 10.0))
    placement.observe(beat("a", [2], 9.0))
    assert placement.choose(None) == 1
    placement.observe(beat("b", [1], 11.0))
    placement.observe(beat("a", [1, 3], 10.5))
    assert placement.choose(3) == 3
    assert {placement.choose(None) for _ in range(8)} == {1, 3}
    assert placement.live()[0].executor_id == "a"


def test_counts_what_was_sent_since_the_last_heartbeat() -> None:
    clock = FakeClock()
    placement = Placement(clock, STALE_S)
    placement.observe(beat("a", [0, 1], clock.now))
    placement.observe(beat("b", [2, 3], clock.now))
    chosen = Counter(placement.choose(None) for _ in range(40))
    assert set(chosen) == {0, 1, 2, 3}
    assert max(chosen.values()) - min(chosen.values()) <= 1
    clock.now += 2
    placement.observe(beat("b", [2, 3], clock.now))  # it has caught up; "a" still counts what was sent
    assert all(placement.choose(None) in (2, 3) for _ in range(10))


executors = st.lists(
    st.tuples(
        st.sampled_from("abcde"),
        st.lists(st.integers(0, 7), max_size=4, unique=True),
        st.integers(0, 6),
        st.integers(0, 20),
        st.booleans(),
        st.floats(0, 3),
    ),
    max_size=12,
)


@given(executors, st.one_of(st.none(), st.integers(0, 9)), st.integers(1, 20))
def test_every_choice_is_owned_and_least_loaded(
    beats: list[tuple[str, list[int], int, int, bool, float]], affinity: int | None, count: int
) -> None:
    clock = FakeClock()
    placement = Placement(clock, STALE_S)
    newest: dict[str, ExecutorHeartbeat] = {}
    for name, partitions, capacity, running, draining, pause in beats:
        clock.now += pause
        made = beat(name, partitions, clock.now, capacity=capacity, running=running, draining=draining)
        placement.observe(made)
        newest[name] = made
    fresh = [b for b in newest.values() if clock.now - b.sent_at <= STALE_S]
    able = [b for b in fresh if b.capacity and not b.draining]
    owned = {p for b in able for p in b.partitions}
    for _ in range(count):
        chosen = placement.choose(affinity)
        if not owned:
            assert chosen is None
        elif affinity in owned:
            assert chosen == affinity
        else:
            assert chosen in owned


@given(st.integers(1, 5), st.integers(1, 200))
def test_equal_executors_get_equal_shares(number: int, count: int) -> None:
    clock = FakeClock()
    placement = Placement(clock, STALE_S)
    for index in range(number):
        placement.observe(beat(f"e{index}", [index], clock.now))
    shares = Counter(placement.choose(None) for _ in range(count))
    assert sum(shares.values()) == count
    assert max(shares.values()) - min(shares.get(index, 0) for index in range(number)) <= 1
