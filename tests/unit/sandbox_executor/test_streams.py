"""Output: the head and the tail kept, all counted."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from services.sandbox_executor.supervisor.streams import CHANNEL_LIMIT, Drain, HeadTail, PrivateChannel


@given(st.lists(st.binary(max_size=400), max_size=12), st.integers(0, 1000))
def test_head_and_tail(chunks: list[bytes], cap: int) -> None:
    kept = HeadTail(cap)
    for chunk in chunks:
        kept.add(chunk)
    data = b"".join(chunks)
    text, cut = kept.finish()
    assert kept.total == len(data)
    assert cut == (len(data) > cap)
    if not cut:
        assert text == data
    else:
        marker = b"\n[sandpiper: %d bytes cut]\n" % (len(data) - cap)
        assert text == data[: cap // 2] + marker + (data[-(cap - cap // 2) :] if cap else b"")


def test_memory_stays_bounded() -> None:
    kept = HeadTail(1000)
    for _ in range(1000):
        kept.add(bytes(65536))
    assert len(kept._head) + len(kept._tail) < 200_000
    assert kept.total == 65_536_000


def test_a_drain_tells_the_end_from_nothing_yet() -> None:
    drain = Drain(100)
    assert not drain.read()
    assert drain.open
    os.write(drain.write_end, b"x")
    drain.started()
    assert drain.read()
    assert not drain.read()
    assert not drain.open
    drain.close()


def test_the_channel_frames_its_input_and_bounds_its_output() -> None:
    channel = PrivateChannel(b"secret")
    channel.write()
    assert os.read(channel.theirs, 100) == b"\0\0\0\6secret"
    assert not channel.pending
    channel.out += bytes(CHANNEL_LIMIT - 1)
    os.write(channel.theirs, b"abc")
    channel.started()
    while channel.open and channel.read():
        pass
    assert len(channel.out) == CHANNEL_LIMIT
    assert channel.out[-1:] == b"a"
    channel.close()


def test_input_for_a_program_that_left_is_dropped() -> None:
    channel = PrivateChannel(bytes(1 << 20))
    channel.started()
    channel.write()
    assert not channel.pending
    channel.close()
