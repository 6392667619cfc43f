"""A consumer without a group neither skips nor repeats, and notices a new log."""

from __future__ import annotations

from typing import Any

from aiokafka.structs import TopicPartition

from sandpiper.bus.anchors import Anchors

P = TopicPartition("t", 0)


class FakeSession:
    """Seeks and positions."""

    def __init__(self, position: int = 0, end: int = 1000) -> None:
        self.partitions = frozenset({P})
        self.seeks: list[int] = []
        self._position = position
        self._end = end

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.seeks.append(offset)

    async def ends(self) -> dict[TopicPartition, int]:
        return {P: self._end}

    async def position(self, partition: TopicPartition) -> int:
        return self._position


def admit(anchors: Anchors, session: Any, offset: int, ident: str) -> bool:
    return anchors.admit(session, P, offset, ident)


async def follow(anchors: Anchors, session: Any) -> Any:
    await anchors.resume(session)
    return session


async def test_the_first_session_starts_as_told_and_later_ones_never_at_the_end() -> None:
    for from_beginning, first in ((True, "earliest"), (False, "latest")):
        anchors = Anchors(from_beginning, durable=True)
        assert anchors.reset == first
        await anchors.resume(FakeSession())  # type: ignore[arg-type]
        assert anchors.reset == "earliest"


async def test_the_same_log_goes_on_after_the_last_record() -> None:
    anchors = Anchors(True, durable=False)
    session = await follow(anchors, FakeSession())
    assert [admit(anchors, session, offset, f"m{offset}") for offset in range(3)] == [True] * 3
    session = await follow(anchors, FakeSession())
    assert session.seeks == [2]
    assert not admit(anchors, session, 2, "m2")
    assert admit(anchors, session, 3, "m3")
    assert session.seeks == [2]


async def test_a_longer_new_log_is_read_from_its_beginning() -> None:
    anchors = Anchors(True, durable=False)
    session = await follow(anchors, FakeSession())
    for offset in range(3):
        admit(anchors, session, offset, f"m{offset}")
    session = await follow(anchors, FakeSession())
    assert not admit(anchors, session, 2, "other")
    assert session.seeks == [2, 0]
    assert [admit(anchors, session, offset, f"n{offset}") for offset in range(4)] == [True] * 4


async def test_the_rest_of_a_fetch_from_the_wrong_place_is_not_delivered() -> None:
    anchors = Anchors(True, durable=False)
    session = await follow(anchors, FakeSession())
    for offset in range(3):
        admit(anchors, session, offset, f"m{offset}")
    session = await follow(anchors, FakeSession())
    assert not admit(anchors, session, 2, "other")
    assert not admit(anchors, session, 3, "later")
    assert [admit(anchors, session, offset, f"n{offset}") for offset in range(4)] == [True] * 4


async def test_a_shorter_new_log_comes_from_its_beginning_by_itself() -> None:
    anchors = Anchors(True, durable=False)
    session = await follow(anchors, FakeSession())
    for offset in range(5):
        admit(anchors, session, offset, f"m{offset}")
    session = await follow(anchors, FakeSession(end=4))
    assert session.seeks == []
    assert admit(anchors, session, 0, "n0")
    assert admit(anchors, session, 1, "n1")


async def test_a_reader_that_started_at_the_end_and_saw_nothing_resumes_there_on_a_durable_broker() -> None:
    for durable, seeks in ((True, [40]), (False, [])):
        anchors = Anchors(False, durable=durable)
        await anchors.resume(FakeSession(position=40))  # type: ignore[arg-type]
        session = await follow(anchors, FakeSession())
        assert session.seeks == seeks
