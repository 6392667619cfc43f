"""Where a consumer without a group stands, over all its sessions.

Invariants
* No message is skipped and none delivered twice while the broker keeps its log.
* When the broker lost its log, everything in the new one is delivered: the record at the remembered place
  is compared by message id, since offsets alone cannot tell the two logs apart.
"""

from __future__ import annotations

import asyncio

from aiokafka.structs import TopicPartition

from sandpiper.bus.session import Session

POSITION_TIMEOUT_S = 10.0


class Anchors:
    """The last record taken from each partition."""

    def __init__(self, from_beginning: bool, *, durable: bool) -> None:
        self._from_beginning = from_beginning
        self._durable = durable
        self._first = True
        self._last: dict[TopicPartition, tuple[int, str]] = {}
        self._starts: dict[TopicPartition, int] = {}
        self._unverified: set[TopicPartition] = set()
        self._rewound: dict[TopicPartition, int] = {}

    @property
    def reset(self) -> str:
        """Where a session starts that knows no place: after an outage never at the end."""
        return "latest" if self._first and not self._from_beginning else "earliest"

    async def resume(self, session: Session) -> None:
        """Seek to the remembered places, or remember where the first session starts."""
        if self._first:
            if not self._from_beginning:
                async with asyncio.timeout(POSITION_TIMEOUT_S):
                    for partition in session.partitions:
                        self._starts[partition] = await session.position(partition)
            self._first = False
            return
        self._rewound.clear()
        async with asyncio.timeout(POSITION_TIMEOUT_S):
            ends = await session.ends()
        # A log that ends before our place is a new one. Tansu answers nothing to a fetch beyond its end.
        self._last = {place: last for place, last in self._last.items() if last[0] < ends.get(place, 0)}
        self._unverified = set(self._last) & session.partitions
        for partition in self._unverified:
            session.seek(partition, self._last[partition][0])
        if self._durable:
            for partition in session.partitions & (self._starts.keys() - self._unverified):
                session.seek(partition, self._starts[partition])

    def admit(self, session: Session, partition: TopicPartition, offset: int, message_id: str) -> bool:
        """True when the record is to be delivered; seeks back when it shows that the log is a new one."""
        last = self._last.get(partition)
        if partition in self._unverified and last is not None:
            self._unverified.discard(partition)
            if (offset, message_id) == last:
                return False
            if offset == last[0] > 0:
                session.seek(partition, 0)
                self._rewound[partition] = offset
                return False
        if offset > self._rewound.get(partition, offset):
            return False  # of the fetch from the wrong place
        self._rewound.pop(partition, None)
        self._last[partition] = (offset, message_id)
        return True
