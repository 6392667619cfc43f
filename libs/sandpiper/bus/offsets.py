"""Which offsets may be committed.

Invariants
* The commit point of a partition never passes a message whose handling has not ended.
* A message that runs or is done here is not started again when a rebalance or a reconnect redelivers it;
  the same offset with another message id is another message: the broker lost its log and began anew.
* Nothing is committed to an assignment before it delivered a record: the log may be a new, shorter one.
* An entry that was dropped (partition lost, log begun anew) has no effect when its handling ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from aiokafka.structs import TopicPartition


@dataclass
class Entry:
    """One message between its delivery and the commit that covers it."""

    offset: int
    message_id: str
    done: bool = False


@dataclass
class PartitionOffsets:
    """The entries of one partition from its commit point on, in order of offset.

    `next` is one above the highest offset ever begun, `seen` one above the last that this assignment
    delivered (None: it delivered none yet), `committed` what the broker last took from this assignment.
    """

    entries: dict[int, Entry] = field(default_factory=dict)
    next: int = 0
    seen: int | None = None
    committed: int | None = None

    def assign(self) -> None:
        """A new assignment begins; it delivers from the broker's commit point on, or a new log."""
        self.seen = self.committed = None

    def begin(self, offset: int, message_id: str) -> Entry | None:
        """Register a delivered message; None when it already runs or is done."""
        if self.seen is None:  # another owner may have finished meanwhile what still runs here
            self._forget_below(offset)
        self.seen = offset + 1
        known = self.entries.get(offset)
        if known is not None and known.message_id == message_id:
            return None
        if offset < self.next:
            self.entries.clear()
            self.committed = None
        entry = Entry(offset, message_id)
        self.entries[offset] = entry
        self.next = offset + 1
        return entry

    def commit_point(self) -> int | None:
        """Offset of the first unfinished message, at most of the next to be delivered; None when not new."""
        if self.seen is None:
            return None
        unfinished = (entry.offset for entry in self.entries.values() if not entry.done)
        point = min(self.seen, next(unfinished, self.seen))
        return None if point == self.committed else point

    def commit(self, offset: int) -> None:
        """Note that everything below `offset` is committed."""
        self.committed = offset
        self._forget_below(offset)

    def _forget_below(self, offset: int) -> None:
        for old in [known for known in self.entries if known < offset]:
            del self.entries[old]


class Ledger:
    """The offsets of all partitions of one consumer, over all its sessions."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, PartitionOffsets] = {}
        self._assigned: frozenset[TopicPartition] = frozenset()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Take a new assignment. What still runs of a partition that comes back is recognised."""
        self._assigned = frozenset(partitions)
        for partition, offsets in list(self._partitions.items()):
            if partition in self._assigned:
                offsets.assign()
            elif all(entry.done for entry in offsets.entries.values()):
                del self._partitions[partition]

    def revoke(self) -> None:
        """Commit nothing until the next assignment."""
        self._assigned = frozenset()

    def begin(self, partition: TopicPartition, offset: int, message_id: str) -> Entry | None:
        """As PartitionOffsets.begin."""
        return self._partitions.setdefault(partition, PartitionOffsets()).begin(offset, message_id)

    def commit_points(self) -> dict[TopicPartition, int]:
        """What a commit should carry now, assigned partitions only."""
        points = {
            partition: self._partitions[partition].commit_point()
            for partition in self._assigned
            if partition in self._partitions
        }
        return {partition: point for partition, point in points.items() if point is not None}

    def commit(self, points: dict[TopicPartition, int]) -> None:
        """Note a commit that the broker took."""
        for partition, offset in points.items():
            if partition in self._partitions:
                self._partitions[partition].commit(offset)
