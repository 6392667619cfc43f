"""Creates the topics of `topics.py` with their partitions and retention."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import structlog
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from sandpiper.bus.backoff import Backoff
from sandpiper.bus.client import client_options
from sandpiper.bus.errors import BusUnavailable
from sandpiper.bus.settings import BusSettings
from sandpiper.topics import TOPICS, Topic, dlq_of

log = structlog.get_logger(__name__)


async def ensure_topics(
    settings: BusSettings, topics: Iterable[Topic] | None = None, timeout: float = 30.0
) -> None:
    """Create what is missing of `topics` (all by default) and their DLQs; wait until they have leaders.

    Safe to call from everywhere at any time. A topic with too few partitions is widened (Kafka) or, where
    the broker cannot do that and keeps nothing anyway (Tansu), made anew. Raises BusUnavailable after
    `timeout` seconds.
    """
    wanted = {t.name: t for topic in (topics or TOPICS.values()) for t in (topic, dlq_of(topic))}
    error: Exception | None = None
    try:
        async with asyncio.timeout(timeout):
            for pause in Backoff(0.1, 2.0).pauses():
                try:
                    return await _ensure(settings, wanted)
                except (KafkaError, OSError, TimeoutError) as failure:
                    error = failure
                await asyncio.sleep(pause)
    except TimeoutError as late:
        raise BusUnavailable(f"topics not ready after {timeout:.0f} s: {error!r}") from (error or late)


async def _ensure(settings: BusSettings, wanted: dict[str, Topic]) -> None:
    admin = AIOKafkaAdminClient(**client_options(settings, "sandpiper-admin"))
    try:
        await admin.start()
        present = await _partitions(admin, wanted)
        await _create(admin, settings, [topic for name, topic in wanted.items() if name not in present])
        for name, count in present.items():
            if count < wanted[name].partitions:
                await _widen(admin, settings, wanted[name])
        if await _partitions(admin, wanted) == {name: topic.partitions for name, topic in wanted.items()}:
            return
        raise KafkaError("topics have no leaders yet")
    finally:
        await admin.close()


async def _partitions(admin: AIOKafkaAdminClient, wanted: dict[str, Topic]) -> dict[str, int]:
    """How many partitions with a leader each present topic has, no more than wanted."""
    found: dict[str, int] = {}
    # All topics, not those wanted: asking for one by name would create it.
    for topic in await admin.describe_topics(None):
        name = topic["topic"]
        if name in wanted and topic["error_code"] == 0:
            led = sum(partition["leader"] >= 0 for partition in topic["partitions"])
            found[name] = min(led, wanted[name].partitions)
    return found


async def _create(admin: AIOKafkaAdminClient, settings: BusSettings, topics: list[Topic]) -> None:
    if not topics:
        return
    response = await admin.create_topics([_new_topic(topic, settings) for topic in topics])
    for name, code, *_ in response.topic_errors:
        error = for_code(code)
        if code and error is not TopicAlreadyExistsError:
            raise error(name)
    log.info("bus.topics_created", topics=[topic.name for topic in topics])


async def _widen(admin: AIOKafkaAdminClient, settings: BusSettings, topic: Topic) -> None:
    log.warning("bus.topic_widened", topic=topic.name, partitions=topic.partitions)
    if settings.is_kafka:
        await admin.create_partitions({topic.name: NewPartitions(total_count=topic.partitions)})
    else:
        await admin.delete_topics([topic.name])
        await _create(admin, settings, [topic])


def _new_topic(topic: Topic, settings: BusSettings) -> Any:
    config = {"retention.ms": str(topic.retention_ms)}
    if topic.compacted:
        config = {"cleanup.policy": "compact"}
    return NewTopic(topic.name, topic.partitions, settings.replication_factor, topic_configs=config)
