"""Who gets which partitions of a consumer group.

Invariants
* Every partition goes to exactly one member that subscribes to its topic; members differ by at most one
  partition per topic.
* Partitions stay where they are as far as balance allows: an executor keeps its sandboxes, a learner its
  runs.
* Topics with as many partitions and the same subscribers are dealt out together: partition k of one goes
  where partition k of the other goes, so that all messages of one key reach one member.

aiokafka's own sticky assignor keeps its state on the class, shared by all consumers of a process, and never
learns its generation (aiokafka issues 1175 and 1176).
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

VERSION = 0
Held = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Claim:
    """What a member held before, and when it got it (unix seconds)."""

    since: float = 0.0
    held: Held = field(default_factory=dict)


class StickyAssignor:
    """The state of one consumer, over all its sessions. Passed to aiokafka as an assignment strategy."""

    name = "sandpiper-sticky"

    def __init__(self) -> None:
        self._claim = Claim()

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """What this member tells the leader: its topics and what it holds."""
        claim = json.dumps({"since": self._claim.since, "held": self._claim.held}).encode()
        return ConsumerProtocolMemberMetadata(VERSION, list(topics), claim)

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Remember what the leader gave."""
        self._claim = Claim(time.time(), {topic: list(found) for topic, found in assignment.assignment})

    def assign(
        self, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """As the leader: deal out all partitions of all topics that members subscribe to."""
        topics = {topic for member in members.values() for topic in member.subscription}
        counts = {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in topics}
        subscriptions = {name: list(member.subscription) for name, member in members.items()}
        claims = {name: _parse(member.user_data) for name, member in members.items()}
        dealt = deal(counts, subscriptions, claims)
        return {
            name: ConsumerProtocolMemberAssignment(VERSION, sorted(dealt[name].items()), b"")
            for name in members
        }


def deal(
    counts: Mapping[str, int], subscriptions: Mapping[str, Iterable[str]], claims: Mapping[str, Claim]
) -> dict[str, dict[str, list[int]]]:
    """Member → topic → partitions, given each topic's number of partitions."""
    together: dict[tuple[int, tuple[str, ...]], list[str]] = defaultdict(list)
    for topic in sorted(counts):
        members = tuple(sorted(name for name, wanted in subscriptions.items() if topic in wanted))
        together[counts[topic], members].append(topic)
    dealt: dict[str, dict[str, list[int]]] = {name: {} for name in subscriptions}
    for (count, members), topics in sorted(together.items()):
        load = {name: sum(map(len, dealt[name].values())) for name in members}
        for name, indexes in _deal_indexes(count, members, topics, claims, load).items():
            dealt[name].update({topic: sorted(indexes) for topic in topics if indexes})
    return dealt


def _deal_indexes(
    count: int,
    members: Sequence[str],
    topics: Sequence[str],
    claims: Mapping[str, Claim],
    load: Mapping[str, int],
) -> dict[str, list[int]]:
    """Deal 0..count-1 to `members`. Who has less of other topics (`load`) comes first where all are equal."""
    holders = _holders(members, topics, claims)
    kept: dict[str, list[int]] = {name: [] for name in members}
    for index in range(count):
        if index in holders:
            kept[holders[index]].append(index)
    least, extra = divmod(count, max(1, len(members)))
    # Those who hold most keep the extra ones, so that fewest move.
    by_holding = sorted(members, key=lambda name: (-len(kept[name]), load[name], name))
    quota = {name: least + (place < extra) for place, name in enumerate(by_holding)}
    dealt = {name: kept[name][: quota[name]] for name in members}
    free = sorted(set(range(count)) - {index for indexes in dealt.values() for index in indexes})
    for name in sorted(members, key=lambda name: (len(dealt[name]), load[name], name)):
        missing = quota[name] - len(dealt[name])
        dealt[name] += free[:missing]
        del free[:missing]
    return dealt


def _holders(members: Sequence[str], topics: Sequence[str], claims: Mapping[str, Claim]) -> dict[int, str]:
    """Index → who held it last; a member that slept through a rebalance has the older claim."""
    holders: dict[int, str] = {}
    for name in sorted(members, key=lambda name: (claims[name].since, name)):
        for topic in topics:
            holders.update(dict.fromkeys(claims[name].held.get(topic, ()), name))
    return holders


def _parse(user_data: bytes) -> Claim:
    """A member's claim; none when it sent something else."""
    try:
        fields = json.loads(user_data)
        held = {str(topic): [int(index) for index in found] for topic, found in fields["held"].items()}
        return Claim(float(fields["since"]), held)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Claim()
