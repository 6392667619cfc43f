"""One transaction: the session, the clock, and what it owes to Kafka."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from google.protobuf.message import Message
from sqlalchemy.ext.asyncio import AsyncSession

from sandpiper.bus import outbox
from sandpiper.clock import Clock
from sandpiper.topics import Topic


@dataclass
class Work:
    """Everything a handler may touch. It commits as a whole or not at all."""

    session: AsyncSession
    clock: Clock
    after_commit: list[Callable[[], None]] = field(default_factory=list)
    """Effects outside the database that must not happen for a transaction that rolls back."""

    cause: str | None = None
    """Id of the message that is being handled; None when time is the cause."""

    owed: list[str] = field(default_factory=list)
    """Topics that get a message when it commits."""

    def owe(
        self,
        topic: Topic,
        key: str,
        message: Message,
        *,
        deadline: float | None = None,
        partition: int | None = None,
        traceparent: str | None = None,
    ) -> None:
        """Publish `message` if and only if this transaction commits."""
        self.owed.append(topic.name)
        outbox.add(
            self.session,
            self.clock,
            topic,
            key,
            message,
            causation_id=self.cause,
            deadline=deadline,
            partition=partition,
            traceparent=traceparent,
        )

    @property
    def owes(self) -> bool:
        """Whether its commit gives somebody something to do."""
        return bool(self.owed)

    @property
    def now(self) -> float:
        """Unix seconds."""
        return self.clock.time()
