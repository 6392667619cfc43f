"""Event streams: order, slow clients, coming back, ends; and the registry of executors."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from sandpiper.bus.message import Headers, Received
from sandpiper.store.db.engine import Sessions
from sandpiper.store.db.models import Run, TrainingStepRow
from sandpiper.topics import EPISODE_EVENTS, EXECUTOR_HEARTBEATS
from sandpiper.v1.common_pb2 import EpisodeRef
from sandpiper.v1.events_pb2 import EpisodeEvent
from sandpiper.v1.sandbox_pb2 import ExecutorHeartbeat
from services.api.live.executors import ExecutorRegistry
from services.api.live.feed import Feed
from services.api.live.hub import Client, Hub, LiveEvent
from services.api.problems import ProblemError
from services.api.routes.events import encode
from services.api.services import Services
from tests.unit.api.api_fakes import FakeClock


def received(topic: Any, message: Any, at: float = 0.0) -> Received[Any]:
    return Received(topic, message, Headers("m"), "k", 0, 0, at)


async def drain(client: Client) -> list[LiveEvent]:
    client.close()
    return [event async for event in client.events(0.05) if event is not None]


async def test_events_reach_their_watchers_in_order() -> None:
    hub = Hub(4, 10, 10)
    with hub.watch("a") as one, hub.watch("a") as two, hub.watch("b") as other:
        for number in range(3):
            hub.publish("a", "episode", str(number))
        assert [event.data for event in await drain(one)] == ["0", "1", "2"]
        assert [event.data for event in await drain(two)] == ["0", "1", "2"]
        assert await drain(other) == []
        assert hub.watched == {"a", "b"}
    assert hub.watched == set()


async def test_a_slow_client_loses_the_oldest_and_is_told() -> None:
    hub = Hub(4, 3, 10)
    with hub.watch("a") as client:
        for number in range(5):
            hub.publish("a", "episode", str(number))
        events = await drain(client)
    assert (events[0].kind, json.loads(events[0].data)) == ("lost", {"count": 2})
    assert [event.data for event in events[1:]] == ["2", "3", "4"]


async def test_a_client_that_comes_back_gets_what_it_missed() -> None:
    hub = Hub(4, 10, 4)
    with hub.watch("a") as client:
        hub.publish("a", "episode", "0")
        (seen,) = await drain(client)
    for number in range(1, 3):
        hub.publish("a", "episode", str(number))
        hub.publish("b", "episode", "other")
    with hub.watch("a", seen.id) as client:
        assert [event.data for event in await drain(client)] == ["1", "2"]
    for foreign in ("", "x", "dead-1", f"{seen.id}x", "-", seen.id.partition("-")[0] + "-" + "9" * 30):
        with hub.watch("a", foreign) as client:
            assert await drain(client) == []


async def test_clients_are_bounded() -> None:
    hub = Hub(1, 10, 0)
    with hub.watch("a"):
        assert hub.full
        with pytest.raises(ProblemError) as caught, hub.watch("a"):
            pass
        assert caught.value.status == 503
    with hub.watch("a"):
        pass
    hub.close()
    assert hub.full


async def test_an_idle_stream_beats() -> None:
    hub = Hub(1, 10, 0)
    with hub.watch("a") as client:
        stream = client.events(0.01)
        assert await anext(stream) is None
        hub.publish("a", "run", "1")
        event = await anext(stream)
        assert event is not None
        assert event.data == "1"
        await stream.aclose()  # type: ignore[attr-defined]


def test_the_wire_format() -> None:
    assert encode(LiveEvent("r", "run", '{"a":1}', "e-1")) == b'id: e-1\nevent: run\ndata: {"a":1}\n\n'


def event(run_id: str, **fields: Any) -> EpisodeEvent:
    ref = EpisodeRef(run_id=run_id, group_id="g", episode_id="ep", attempt=1, turn=0)
    return EpisodeEvent(ref=ref, state="graded", previous="grading", at=3.0, task_id="t", **fields)


async def test_the_feed_publishes_episodes_steps_and_the_end(
    services: Services, sessions: Sessions, run: dict[str, Any]
) -> None:
    feed = Feed(services.hub, sessions, 0.01)
    with services.hub.watch(run["id"]) as client:
        await feed.on_episode(received(EPISODE_EVENTS, event(run["id"], has_reward=True, reward=0.5)))
        await feed.on_episode(received(EPISODE_EVENTS, event("other")))
        await feed.poll()
        await feed.poll()
        async with sessions.begin() as session:
            row = await session.get(Run, run["id"])
            assert row is not None
            row.step, row.state = 1, "succeeded"
            step = TrainingStepRow(
                run_id=run["id"],
                step=1,
                policy_version=1,
                metrics={},
                checkpoint=None,
                started_at=1.0,
                seconds=1.0,
                recorded_at=2.0,
            )
            session.add(step)
        await feed.poll()
        events = [item async for item in client.events(1.0) if item is not None]
    assert [item.kind for item in events] == ["episode", "run", "step", "run", "end"]
    episode = json.loads(events[0].data)
    assert (episode["episode_id"], episode["reward"], episode["state"]) == ("ep", 0.5, "graded")
    assert json.loads(events[-1].data)["state"] == "succeeded"


async def test_no_reward_is_null_and_not_zero(services: Services, sessions: Sessions) -> None:
    feed = Feed(services.hub, sessions, 0.01)
    with services.hub.watch("r") as client:
        await feed.on_episode(received(EPISODE_EVENTS, event("r")))
        (only,) = await drain(client)
    assert json.loads(only.data)["reward"] is None
    assert json.loads(only.data)["passed"] is None


async def test_a_stream_begins_with_a_snapshot_and_ends_with_the_run(
    client: httpx.AsyncClient, services: Services, sessions: Sessions, run: dict[str, Any]
) -> None:
    feed = Feed(services.hub, sessions, 0.01)

    async def later() -> None:
        while run["id"] not in services.hub.watched:
            await asyncio.sleep(0.01)
        await feed.on_episode(received(EPISODE_EVENTS, event(run["id"])))
        await asyncio.sleep(0.15)  # long enough for a heartbeat
        async with sessions.begin() as session:
            row = await session.get(Run, run["id"])
            assert row is not None
            row.state = "cancelled"
        await feed.poll()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(later())
        answer = await client.get(f"/v1/runs/{run['id']}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    kinds = [line.removeprefix("event: ") for line in answer.text.splitlines() if line.startswith("event: ")]
    assert kinds == ["snapshot", "episode", "run", "end"]
    assert ": still here" in answer.text
    assert not services.hub.watched
    # A run that is over says so at once.
    again = await client.get(f"/v1/runs/{run['id']}/events")
    assert [line for line in again.text.splitlines() if line.startswith("event")] == [
        "event: snapshot",
        "event: end",
    ]
    assert (await client.get("/v1/runs/run-none/events")).status_code == 404


async def test_no_room_for_another_stream(
    client: httpx.AsyncClient, services: Services, run: dict[str, Any]
) -> None:
    services.hub.close()
    answer = await client.get(f"/v1/runs/{run['id']}/events")
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"


async def test_executors_live_and_are_forgotten() -> None:
    clock = FakeClock()
    registry = ExecutorRegistry(clock)

    async def beat(name: str, **fields: Any) -> None:
        message = ExecutorHeartbeat(executor_id=name, **fields)
        await registry.on_heartbeat(received(EXECUTOR_HEARTBEATS, message, clock.now))

    await beat("one", capacity=4, running=1, sandboxes=2, partitions=[3, 1])
    clock.now += 20
    await beat("two", capacity=2)
    listed = registry.list()
    assert [(item.id, item.alive) for item in listed.items] == [("two", True), ("one", False)]
    assert (listed.capacity, listed.running) == (2, 0)
    assert listed.items[1].partitions == [1, 3]
    old = ExecutorHeartbeat(executor_id="ghost")
    await registry.on_heartbeat(received(EXECUTOR_HEARTBEATS, old, clock.now - 4000))
    clock.now += 590
    assert [item.id for item in registry.list().items] == ["two"]


async def test_executors_route(client: httpx.AsyncClient, services: Services) -> None:
    message = ExecutorHeartbeat(executor_id="one", capacity=4)
    await services.executors.on_heartbeat(received(EXECUTOR_HEARTBEATS, message, services.clock.time()))
    found = (await client.get("/v1/executors")).json()
    assert (found["items"][0]["id"], found["capacity"]) == ("one", 4)
