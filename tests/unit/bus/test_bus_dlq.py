"""Dead letters say everything; the limit looks at a window and a share."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from sandpiper.bus.dlq import VALUE_BYTES, DeadLetters, DlqLimit, DlqWindow
from sandpiper.bus.errors import DlqLimitExceeded
from sandpiper.topics import RUN_COMMANDS
from sandpiper.v1.events_pb2 import DeadLetter


@dataclass
class ManualClock:
    """A clock that stands still."""

    now: float = 1000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


@dataclass
class Sent:
    """Keeps what is sent."""

    letters: list[tuple[Any, ...]] = field(default_factory=list)

    async def send_encoded(self, *args: Any) -> None:
        self.letters.append(args)


def record(value: bytes = b"v") -> Any:
    headers = (("message-id", b"m1"), ("traceparent", b"00-x"))
    return SimpleNamespace(partition=3, offset=7, key=b"k", value=value, headers=headers)


async def test_a_letter_carries_the_whole_record() -> None:
    sent = Sent()
    letters = DeadLetters(sent, "grader", DlqLimit(), ManualClock())
    await letters.put(RUN_COMMANDS, record(), "unparseable", "why", 2)
    topic, key, partition, value, headers = sent.letters[0]
    letter = DeadLetter.FromString(value)
    assert (topic, key, partition) == ("run.commands.dlq", b"k", None)
    assert dict(headers)["causation-id"] == b"m1"
    assert letter == DeadLetter(
        topic="run.commands",
        partition=3,
        offset=7,
        key=b"k",
        value=b"v",
        headers={"message-id": "m1", "traceparent": "00-x"},
        reason="unparseable",
        detail="why",
        consumer="grader",
        at=1000.0,
        tries=2,
    )


async def test_a_letter_stays_small_enough_for_the_broker() -> None:
    sent = Sent()
    huge = record(b"x" * 500_000)
    await DeadLetters(sent, "g", DlqLimit(), ManualClock()).put(
        RUN_COMMANDS, huge, "unparseable", "d" * 99_999, 1
    )
    letter = DeadLetter.FromString(sent.letters[0][3])
    assert len(letter.value) == VALUE_BYTES
    assert "500000 bytes" in letter.detail
    assert len(sent.letters[0][3]) < 64 * 1024


def test_more_letters_than_the_limit_within_the_window_are_too_many() -> None:
    window = DlqWindow(DlqLimit(letters=3, window_s=60, ratio=0.5), ManualClock())
    for _ in range(3):
        window.record(dead=True)
    with pytest.raises(DlqLimitExceeded, match="4 of 4"):
        window.record(dead=True)


def test_letters_that_come_slowly_or_among_many_good_messages_are_fine() -> None:
    clock = ManualClock()
    window = DlqWindow(DlqLimit(letters=3, window_s=60, ratio=0.5), clock)
    for _ in range(20):
        window.record(dead=True)
        clock.now += 21
    for _ in range(100):
        window.record(dead=False)
    for _ in range(97):
        window.record(dead=True)
    clock.now += 61
    window.record(dead=False)
    for _ in range(3):
        window.record(dead=True)
    with pytest.raises(DlqLimitExceeded, match="4 of 5"):
        window.record(dead=True)
