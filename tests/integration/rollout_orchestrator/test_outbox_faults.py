"""Rows that cannot be published, and what messages say about their cause."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from sandpiper.bus.message import Outgoing
from sandpiper.bus.outbox import OutboxRelay
from sandpiper.store.db.engine import Sessions
from sandpiper.store.db.models import OutboxRow
from sandpiper.topics import INFERENCE_REQUESTS, INFERENCE_RESULTS
from tests.integration.rollout_orchestrator.world import ManualClock, World, start_run


class Recorder:
    def __init__(self) -> None:
        self.sent: list[Outgoing] = []

    async def send(self, out: Outgoing) -> None:
        self.sent.append(out)


class Anywhere:
    def available(self) -> bool:
        return True

    def choose(self, affinity: int | None) -> int | None:
        return affinity or 0


async def test_a_row_that_cannot_be_published_holds_up_no_other(sessions: Sessions) -> None:
    world = World(sessions, 1, 0.0)
    await start_run(world)
    await world.sweeper.admit_all()
    async with sessions.begin() as session:
        rows = (await session.scalars(select(OutboxRow).order_by(OutboxRow.id))).all()
        total, bad = len(rows), rows[0].id
        rows[0].topic = "a.topic.of.tomorrow"
    recorder: Any = Recorder()
    relay = OutboxRelay(sessions, recorder, Anywhere(), ManualClock(), batch=4)
    published = 0
    while count := await relay.relay_once():
        published += count
    assert (published, len(recorder.sent)) == (total - 1, total - 1)
    async with sessions() as session:
        left = (await session.scalars(select(OutboxRow.id).where(OutboxRow.published_at.is_(None)))).all()
    assert left == [bad]


async def test_a_message_names_the_one_that_caused_it(sessions: Sessions) -> None:
    world = World(sessions, 2, 0.0)
    await start_run(world)
    await world.sweeper.admit_all()
    request = next(message for topic, message in await world.outbox() if topic is INFERENCE_REQUESTS)
    received = world.received(INFERENCE_RESULTS, world.generation(request, fails=False))
    await world.handlers.results([received])
    async with sessions() as session:
        rows = (await session.scalars(select(OutboxRow).where(OutboxRow.published_at.is_(None)))).all()
    assert rows
    assert {row.headers["causation_id"] for row in rows} == {received.headers.message_id}
