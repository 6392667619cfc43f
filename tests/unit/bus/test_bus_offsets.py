"""The commit point never passes unfinished work, whatever the order of ends, rebalances and lost logs."""

from __future__ import annotations

from aiokafka.structs import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from sandpiper.bus.offsets import Entry, Ledger, PartitionOffsets

P = TopicPartition("t", 0)
Q = TopicPartition("t", 1)


def begin(offsets: PartitionOffsets, *names: int) -> list[Entry]:
    entries = [offsets.begin(number, f"m{number}") for number in names]
    assert None not in entries
    return [entry for entry in entries if entry is not None]


def test_commits_up_to_the_first_unfinished_message() -> None:
    offsets = PartitionOffsets()
    assert offsets.commit_point() is None
    first, second, third = begin(offsets, 5, 6, 9)  # compaction left a gap
    assert offsets.commit_point() == 5
    third.done = True
    assert offsets.commit_point() == 5
    first.done = True
    assert offsets.commit_point() == 6
    second.done = True
    assert offsets.commit_point() == 10
    offsets.commit(10)
    assert offsets.commit_point() is None


def test_a_redelivered_message_is_not_begun_again_while_it_runs_or_is_done() -> None:
    ledger = Ledger()
    ledger.assign([P])
    running, done = ledger.begin(P, 0, "a"), ledger.begin(P, 1, "b")
    assert running is not None
    assert done is not None
    done.done = True
    ledger.revoke()
    assert ledger.commit_points() == {}
    ledger.assign([P])
    assert ledger.begin(P, 0, "a") is None
    assert ledger.begin(P, 1, "b") is None
    assert ledger.begin(P, 2, "c") is not None
    running.done = True
    assert ledger.commit_points() == {P: 2}


def test_a_new_log_at_old_offsets_is_recognised_and_old_work_has_no_effect_on_it() -> None:
    ledger = Ledger()
    ledger.assign([P])
    old = ledger.begin(P, 0, "a")
    assert old is not None
    ledger.begin(P, 1, "b")
    ledger.revoke()
    ledger.assign([P])
    new = ledger.begin(P, 0, "x")
    assert new is not None
    old.done = True
    assert ledger.commit_points() == {P: 0}
    new.done = True
    assert ledger.commit_points() == {P: 1}


def test_nothing_is_committed_to_an_assignment_before_its_log_was_seen() -> None:
    ledger = Ledger()
    ledger.assign([P])
    for offset in range(3):
        entry = ledger.begin(P, offset, f"m{offset}")
        assert entry is not None
        entry.done = True
    ledger.revoke()
    ledger.assign([P])
    # The broker may have lost its log: committing 3 now would skip what it has from 0 on.
    assert ledger.commit_points() == {}
    assert ledger.begin(P, 0, "other log") is not None
    assert ledger.commit_points() == {P: 0}


def test_what_another_owner_finished_meanwhile_does_not_hold_the_commit_back() -> None:
    ledger = Ledger()
    ledger.assign([P])
    assert ledger.begin(P, 0, "a") is not None
    ledger.revoke()
    ledger.assign([Q])
    ledger.assign([P])
    later = ledger.begin(P, 7, "h")
    assert later is not None
    later.done = True
    assert ledger.commit_points() == {P: 8}


def test_partitions_that_are_not_assigned_are_not_committed_and_forgotten_when_idle() -> None:
    ledger = Ledger()
    ledger.assign([P, Q])
    for partition in (P, Q):
        entry = ledger.begin(partition, 0, "a")
        assert entry is not None
        entry.done = True
    ledger.assign([Q])
    assert set(ledger.commit_points()) <= {Q}
    ledger.commit({P: 1})  # too late, ignored
    assert P not in ledger._partitions


@given(st.data())
def test_model(data: st.DataObject) -> None:
    """Against a plain model: messages end in any order, are redelivered from the last commit at any time."""
    ledger = Ledger()
    ledger.assign([P])
    log = 12
    next_offset, committed = 0, 0
    running: dict[int, Entry] = {}
    ended: set[int] = set()
    begun: list[int] = []
    for _ in range(data.draw(st.integers(5, 60))):
        match data.draw(st.sampled_from(["deliver", "end", "commit", "rebalance"])):
            case "deliver" if next_offset < log:
                entry = ledger.begin(P, next_offset, f"m{next_offset}")
                assert (entry is None) == (next_offset in running or next_offset in ended)
                if entry is not None:
                    begun.append(next_offset)
                    running[next_offset] = entry
                next_offset += 1
            case "end" if running:
                offset = data.draw(st.sampled_from(sorted(running)))
                running.pop(offset).done = True
                ended.add(offset)
            case "commit":
                points = ledger.commit_points()
                for point in points.values():
                    assert point >= committed
                    assert set(range(point)) <= ended
                    committed = point
                ledger.commit(points)
            case "rebalance":
                ledger.revoke()
                ledger.assign([P])
                next_offset = committed
    assert len(begun) == len(set(begun))
