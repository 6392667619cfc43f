"""How to reach the broker."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class BusSettings(BaseModel):
    """Connection settings and timings shared by producers, consumers and topic administration."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bootstrap: str = "127.0.0.1:9092"
    """`host:port`, or several separated by commas."""

    broker: Literal["kafka", "tansu"] = "kafka"
    """Which broker answers. Tansu polls its log, keeps it in memory and has no idempotent producer."""

    fetch_max_wait_ms: int | None = None
    """Longest a fetch waits for data. None: 500 on Kafka, which wakes up at once; 200 on Tansu, which sleeps
    (each of its fetches costs 2 ms of a core)."""

    idle_fetch_wait_ms: int | None = None
    """The same for a consumer that has seen nothing for some seconds. None: as above on Kafka, 500 on
    Tansu."""

    request_timeout_ms: int = 10_000
    """Longest wait for the answer to one request."""

    session_timeout_ms: int | None = None
    """A silent group member loses its partitions after this. None: 10 s on Kafka; 6 s on Tansu, which makes
    the first member of a group wait half of it."""

    heartbeat_interval_ms: int | None = None
    """How often a group member reports; also how fast it notices a rebalance. None: 1 s on Kafka, 2 s on
    Tansu."""

    retry_backoff_ms: int = 100
    """Pause of the Kafka client between tries of one request."""

    commit_interval_s: float = 0.2
    """Shortest time between two offset commits of one consumer."""

    reconnect_max_s: float = 5.0
    """Longest pause between two attempts to reach a broker that is gone."""

    send_timeout_s: float = 30.0
    """How long a send is retried before it raises BusUnavailable."""

    replication_factor: int = 1
    """Replicas of each topic that `ensure_topics` creates."""

    @property
    def is_kafka(self) -> bool:
        """True where the broker keeps its log over a restart and supports idempotent producers."""
        return self.broker == "kafka"

    @property
    def fetch_wait_ms(self) -> int:
        """`fetch_max_wait_ms` with the default that suits the broker."""
        if self.fetch_max_wait_ms is not None:
            return self.fetch_max_wait_ms
        return 500 if self.is_kafka else 200

    @property
    def idle_wait_ms(self) -> int:
        """`idle_fetch_wait_ms` with the default that suits the broker."""
        if self.idle_fetch_wait_ms is not None:
            return self.idle_fetch_wait_ms
        return self.fetch_wait_ms if self.is_kafka else max(500, self.fetch_wait_ms)

    @property
    def heartbeat_ms(self) -> int:
        """`heartbeat_interval_ms` with the default that suits the broker and the session timeout."""
        if self.heartbeat_interval_ms is not None:
            return self.heartbeat_interval_ms
        return min(self.session_ms // 3, 1_000 if self.is_kafka else 2_000)

    @property
    def session_ms(self) -> int:
        """`session_timeout_ms` with the default that suits the broker."""
        if self.session_timeout_ms is not None:
            return self.session_timeout_ms
        return 10_000 if self.is_kafka else 6_000
