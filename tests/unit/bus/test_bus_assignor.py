"""Assignments are complete, even, sticky, and keep equal partitions of sibling topics together."""

from __future__ import annotations

from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from hypothesis import given
from hypothesis import strategies as st

from sandpiper.bus.assignor import Claim, StickyAssignor, deal

TOPICS = {"a": 8, "b": 8, "c": 32, "d": 1, "e": 0}
Dealt = dict[str, dict[str, list[int]]]


def everyone(members: list[str]) -> dict[str, list[str]]:
    return {name: list(TOPICS) for name in members}


def claims_of(dealt: Dealt, members: list[str], since: float = 1.0) -> dict[str, Claim]:
    return {name: Claim(since, dealt.get(name, {})) for name in members}


def assert_complete_and_even(dealt: Dealt, members: list[str]) -> None:
    for topic, count in TOPICS.items():
        each = [dealt[name].get(topic, []) for name in members]
        assert sorted(index for indexes in each for index in indexes) == list(range(count))
        assert max(map(len, each)) - min(map(len, each)) <= 1


names = st.lists(st.text("abcdef0123", min_size=1, max_size=4), min_size=1, max_size=9, unique=True)


@given(names, names)
def test_every_change_of_members_leaves_all_complete_even_and_moves_little(
    before: list[str], after: list[str]
) -> None:
    first = deal(TOPICS, everyone(before), claims_of({}, before))
    assert_complete_and_even(first, before)
    second = deal(TOPICS, everyone(after), claims_of(first, after))
    assert_complete_and_even(second, after)
    for topic, count in TOPICS.items():
        stayed = sum(len({*first.get(n, {}).get(topic, [])} & {*second[n].get(topic, [])}) for n in after)
        # Whoever stays keeps what it had, up to its fair share.
        share = count // len(after)
        expected = sum(min(share, len(first[name].get(topic, []))) for name in after if name in first)
        assert stayed >= expected


@given(names)
def test_sibling_topics_are_dealt_out_alike(members: list[str]) -> None:
    dealt = deal(TOPICS, everyone(members), claims_of({}, members))
    for name in members:
        assert dealt[name].get("a") == dealt[name].get("b")


def test_nothing_moves_when_nobody_comes_or_goes() -> None:
    members = ["x", "y", "z"]
    first = deal(TOPICS, everyone(members), claims_of({}, members))
    assert deal(TOPICS, everyone(members), claims_of(first, members)) == first


def test_the_newer_of_two_claims_counts() -> None:
    claims = {"slept": Claim(1.0, {"c": list(range(32))}), "awake": Claim(2.0, {"c": list(range(16))})}
    dealt = deal({"c": 32}, {"slept": ["c"], "awake": ["c"]}, claims)
    assert dealt["awake"]["c"] == list(range(16))


def test_members_get_only_topics_that_they_subscribe_to() -> None:
    dealt = deal({"a": 4, "b": 4}, {"x": ["a"], "y": ["a", "b"]}, {"x": Claim(), "y": Claim()})
    assert set(dealt["x"]) == {"a"}
    assert dealt["y"]["b"] == [0, 1, 2, 3]
    assert sorted(dealt["x"]["a"] + dealt["y"]["a"]) == [0, 1, 2, 3]


class Cluster(ClusterMetadata):  # type: ignore[misc]
    """A cluster with one topic."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return {0, 1, 2, 3} if topic == "t" else None


def test_each_consumer_of_a_process_has_its_own_memory() -> None:
    one, two = StickyAssignor(), StickyAssignor()
    members = {"1": one.metadata(["t"]), "2": two.metadata(["t", "missing"])}
    first = one.assign(Cluster(), members)
    for assignor, name in ((one, "1"), (two, "2")):
        encoded = first[name].encode()
        assignor.on_assignment(ConsumerProtocolMemberAssignment.decode(encoded))
    members = {
        "9": one.metadata(["t"]),
        "0": two.metadata(["t"]),
    }  # new ids, as after a restart of the broker
    second = two.assign(Cluster(), members)
    assert second["9"].partitions() == first["1"].partitions()
    assert second["0"].partitions() == first["2"].partitions()


def test_foreign_member_data_counts_as_no_claim() -> None:
    metadata = {"x": ConsumerProtocolMemberMetadata(0, ["t"], b"\x00junk")}
    assert len(StickyAssignor().assign(Cluster(), metadata)["x"].partitions()) == 4
