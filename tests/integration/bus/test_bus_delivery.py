"""Round trips: what a handler sees is what was sent; dead letters are typed; a flood of them stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sandpiper.bus.admin import ensure_topics
from sandpiper.bus.backoff import Backoff
from sandpiper.bus.batch import BatchConsumer
from sandpiper.bus.consumer import Consumer
from sandpiper.bus.dlq import DlqLimit
from sandpiper.bus.errors import BusUnavailable, DlqLimitExceeded, Reject, Retry
from sandpiper.bus.message import Outgoing, Received
from sandpiper.bus.producer import Producer
from sandpiper.telemetry import tracing
from sandpiper.v1.run_pb2 import CreateRun, RunCommand
from tests.integration.brokers import Broker, new_topic
from tests.integration.bus.helpers import (
    MemoryClaims,
    Names,
    command,
    consuming,
    dead_letters,
    eventually,
    producing,
)

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
LARGE = "x" * 200_000


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """The spans of this process."""
    exporter, provider = InMemorySpanExporter(), tracing.make_provider("tests")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", lambda: provider.get_tracer("tests"))
    yield exporter
    provider.shutdown()


async def test_what_was_sent_arrives_with_its_headers_and_at_its_place(broker: Broker) -> None:
    topic, claims = new_topic(), MemoryClaims()
    await ensure_topics(broker.settings, [topic])
    got: list[Received[Any]] = []

    async def keep(received: Received[Any]) -> None:
        got.append(received)

    async with producing(broker.settings, claims) as producer:
        consumer = Consumer(broker.settings, f"g-{topic.name}", {topic: keep}, producer, claims)
        deadline = time.time() - 5.0  # passed already: delivered all the same
        first = command(
            topic,
            "placed",
            key="the key",
            partition=2,
            message_id="msg-1",
            causation_id="msg-0",
            deadline=deadline,
            traceparent=PARENT,
        )
        await producer.send(first)
        large = RunCommand(run_id="large", create=CreateRun(document_json=LARGE))
        await producer.send(Outgoing(topic, large, "large"))
        async with consuming(consumer):
            await eventually(lambda: len(got) == 2)
    by_name = {received.message.run_id: received for received in got}
    placed = by_name["placed"]
    assert (placed.partition, placed.key, placed.topic) == (2, "the key", topic)
    assert (placed.headers.message_id, placed.headers.causation_id) == ("msg-1", "msg-0")
    assert placed.headers.deadline == deadline
    assert placed.headers.expired(time.time())
    assert abs(placed.timestamp - time.time()) < 60
    assert by_name["large"].message.create.document_json == LARGE
    assert len(claims.blobs) == 1


async def test_one_trace_leads_from_sender_to_handler_and_on(
    broker: Broker, spans: InMemorySpanExporter
) -> None:
    topic, onward = new_topic(partitions=1), new_topic(partitions=1)
    await ensure_topics(broker.settings, [topic, onward])
    names, alone = Names(), Names()

    async def forward(received: Received[Any]) -> None:
        with tracing.span("work"):
            await producer.send(command(onward, "forwarded", causation_id=received.headers.message_id))

    async def batch(received: list[Received[Any]]) -> None:
        for each in received:
            await alone(each)

    async with producing(broker.settings) as producer:
        await producer.send(command(topic, "x", traceparent=PARENT))
        consumers = [
            Consumer(broker.settings, f"a-{topic.name}", {topic: forward, onward: names}, producer, None),
            BatchConsumer(broker.settings, f"b-{topic.name}", [topic], batch, producer, None),
        ]
        async with consuming(*consumers):
            await eventually(lambda: names.all == ["forwarded"] and alone.all == ["x"])
    finished = spans.get_finished_spans()
    parents = {span.name: tracing.traceparent_of(span.parent) for span in finished}
    ids = {span.name: tracing.traceparent_of(span.get_span_context()) for span in finished}
    sent, handled = f"{topic.name} publish", f"{topic.name} process"
    assert parents[sent] == PARENT
    handlings = [tracing.traceparent_of(span.parent) for span in finished if span.name == handled]
    assert handlings == [ids[sent]] * 2  # one for each consumer
    onward_sent, onward_handled = f"{onward.name} publish", f"{onward.name} process"
    assert parents["work"] in [
        tracing.traceparent_of(span.get_span_context()) for span in finished if span.name == handled
    ]
    assert parents[onward_sent] == ids["work"]
    assert parents[onward_handled] == ids[onward_sent]
    assert {str(ident).split("-")[1] for ident in ids.values()} == {PARENT.split("-")[1]}


async def test_what_cannot_be_handled_becomes_a_typed_dead_letter(broker: Broker) -> None:
    topic, claims = new_topic(partitions=1), MemoryClaims()
    await ensure_topics(broker.settings, [topic])
    tries: list[str] = []

    async def handle(received: Received[Any]) -> None:
        tries.append(received.message.run_id)
        match received.message.run_id:
            case "reject":
                raise Reject("expired", "too old")
            case "broken":
                raise ZeroDivisionError
            case "later" if tries.count("later") < 4:
                raise Retry

    async with producing(broker.settings, claims) as producer:
        value, headers = command(topic, "x", message_id="bad-version").encode()
        wrong = [(name, b"99" if name == "schema-version" else text) for name, text in headers]
        await producer.send_encoded(topic, "k", None, value, wrong)
        await producer.send_encoded(topic, "k", None, b"\xff\xfe not protobuf", headers)
        for name in ("reject", "broken", "later", "fine"):
            await producer.send(command(topic, name))
        await producer.send(Outgoing(topic, RunCommand(run_id=LARGE), "k"))
        claims.blobs.clear()
        await producer.send(Outgoing(topic, RunCommand(run_id=LARGE + "y"), "k"))
        claims.away = 2
        consumer = Consumer(
            broker.settings,
            f"g-{topic.name}",
            {topic: handle},
            producer,
            claims,
            max_tries=3,
            backoff=Backoff(0.01, 0.05),
        )
        async with consuming(consumer):
            await eventually(lambda: len(tries) >= 10)
            letters = {letter.offset: letter for letter in await dead_letters(broker.settings, topic, 5)}
    reasons = [letters[offset].reason if offset in letters else None for offset in range(8)]
    assert reasons == [
        "schema_version", "unparseable", "expired", "handler_error", None, None, "claim_check", None
    ]  # fmt: skip
    assert [tries.count(name) for name in ("reject", "broken", "later", "fine")] == [1, 3, 4, 1]
    broken = letters[3]
    assert (broken.tries, broken.consumer, broken.topic) == (3, f"g-{topic.name}", topic.name)
    assert "ZeroDivisionError" in broken.detail
    assert RunCommand.FromString(broken.value).run_id == "broken"
    assert letters[0].headers["message-id"] == "bad-version"


async def test_a_flood_of_dead_letters_stops_the_consumer_and_keeps_the_rest(broker: Broker) -> None:
    topic = new_topic(partitions=1)
    await ensure_topics(broker.settings, [topic])
    group = f"g-{topic.name}"

    async def bad_deploy(received: Received[Any]) -> None:
        raise Reject

    async with producing(broker.settings) as producer:
        for number in range(20):
            await producer.send(command(topic, f"m{number}"))
        limit = DlqLimit(letters=3, window_s=60, ratio=0.5)
        consumer = Consumer(
            broker.settings, group, {topic: bad_deploy}, producer, None, concurrency=1, dlq_limit=limit
        )
        with pytest.raises(DlqLimitExceeded):
            await asyncio.wait_for(consumer.run(), 60)
        names = Names()
        good = Consumer(broker.settings, group, {topic: names}, producer, None)
        async with consuming(good):
            await eventually(lambda: "m19" in names.all)
    # The fourth letter was one too many: it was written, but the message stays uncommitted.
    assert names.all == [f"m{number}" for number in range(3, 20)]
    assert len(await dead_letters(broker.settings, topic, 4)) == 4


async def test_order_within_a_key_is_kept_while_keys_run_side_by_side(broker: Broker) -> None:
    topic = new_topic(partitions=1)
    await ensure_topics(broker.settings, [topic])
    ended: list[str] = []
    running: set[str] = set()
    together = False

    async def handle(received: Received[Any]) -> None:
        nonlocal together
        assert received.key not in running
        running.add(received.key)
        together = together or len(running) > 1
        await asyncio.sleep(0.03 if received.message.run_id.endswith("0") else 0.001)
        ended.append(received.message.run_id)
        running.discard(received.key)

    async with producing(broker.settings) as producer:
        for number in range(12):
            await producer.send(command(topic, f"{'ab'[number % 2]}{number // 2}", key="ab"[number % 2]))
        consumer = Consumer(
            broker.settings,
            f"g-{topic.name}",
            {topic: handle},
            producer,
            None,
            keep_order=True,
            concurrency=8,
        )
        async with consuming(consumer):
            await eventually(lambda: len(ended) == 12)
    for key in "ab":
        assert [name for name in ended if name[0] == key] == [f"{key}{number}" for number in range(6)]
    assert together


async def test_broadcast_reaches_every_instance_and_starts_where_it_is_told(broker: Broker) -> None:
    topic = new_topic(partitions=2)
    await ensure_topics(broker.settings, [topic])
    old, new, other = Names(), Names(), Names()
    async with producing(broker.settings) as producer:
        await producer.send(command(topic, "before"))

        def reader(names: Names, from_beginning: bool) -> Consumer:
            return Consumer(
                broker.settings,
                None,
                {topic: names},
                producer,
                None,
                broadcast=True,
                from_beginning=from_beginning,
            )

        readers = [reader(old, True), reader(new, False), reader(other, False)]
        async with consuming(*readers):
            await eventually(lambda: all(len(each.partitions) == 2 for each in readers) and len(old) == 1)
            await eventually(lambda: all(each.connected for each in readers))
            await asyncio.sleep(0.5)
            await producer.send(command(topic, "after"))
            await eventually(lambda: len(old) == 2 and len(new) == 1 and len(other) == 1)
    assert (old.all, new.all, other.all) == (["before", "after"], ["after"], ["after"])


async def test_a_send_that_cannot_work_says_so_at_once(broker: Broker) -> None:
    topic = new_topic(partitions=1)
    await ensure_topics(broker.settings, [topic])
    async with producing(broker.settings) as producer:
        with pytest.raises(ValueError, match="no partition 7"):
            await producer.send(command(topic, "x", partition=7))
        with pytest.raises(ValueError, match="needs an object store"):
            await producer.send(Outgoing(topic, RunCommand(run_id=LARGE), "k"))
        with pytest.raises(TypeError, match="carries RunCommand"):
            await producer.send(Outgoing(topic, CreateRun(), "k"))
        with pytest.raises(BusUnavailable):
            await producer.send(command(new_topic(), "x"), timeout=0.5)
        await producer.send(command(topic, "still fine"))
    with pytest.raises(BusUnavailable):
        await producer.send(command(topic, "x"))


async def test_topics_are_made_once_and_as_the_table_says(broker: Broker) -> None:
    narrow = new_topic(partitions=2)
    wide = type(narrow)(narrow.name, RunCommand, ("test",), "test", 5, narrow.retention_ms)
    await asyncio.gather(*(ensure_topics(broker.settings, [narrow]) for _ in range(3)))
    await ensure_topics(broker.settings)
    await ensure_topics(broker.settings, [wide])
    async with producing(broker.settings) as producer:
        await producer.send(command(wide, "x", partition=4))
        with pytest.raises(ValueError, match="no partition 5"):
            await producer.send(command(wide, "x", partition=5))
    unreachable = broker.settings.model_copy(update={"bootstrap": "127.0.0.1:1"})
    with pytest.raises(BusUnavailable):
        await ensure_topics(unreachable, [narrow], timeout=0.5)
    with pytest.raises(BusUnavailable):
        await Producer(unreachable.model_copy(update={"send_timeout_s": 0.3}), None).start()
