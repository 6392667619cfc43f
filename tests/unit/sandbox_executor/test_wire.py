"""Messages between host and supervisor: both ends, over a real socket pair."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator

import pytest

from services.sandbox_executor.backend.bubblewrap.link import Link
from services.sandbox_executor.backend.protocol import Refused, SandboxLost
from services.sandbox_executor.supervisor import wire
from services.sandbox_executor.supervisor.wire import Closed, Wire


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Our end and the supervisor's."""
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


def test_a_body_left_unread_does_not_shift_what_follows(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    ours.sendall(
        wire.pack({"op": "a", "size": 1000}) + bytes(1000) + wire.pack({"op": "b", "size": 2}) + b"xy"
    )
    supervisor = Wire(theirs.fileno())
    header, body = supervisor.recv()
    assert (header["op"], body.read(3)) == (b"a", b"\0\0\0")
    header, body = supervisor.recv()
    assert (header["op"], body.read(2), body.left) == (b"b", b"xy", 0)


def test_a_body_ends_where_its_header_says(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    ours.sendall(wire.pack({"op": "a", "size": 2}) + b"xyz")
    _, body = Wire(theirs.fileno()).recv()
    with pytest.raises(ValueError, match="shorter"):
        body.read(3)


def test_the_end_of_the_stream_is_told(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    ours.sendall(wire.pack({"op": "a"})[:-1])
    ours.close()
    with pytest.raises(Closed):
        Wire(theirs.fileno()).recv()


def test_the_descriptor_is_not_inherited(pair: tuple[socket.socket, socket.socket]) -> None:
    os.set_inheritable(pair[1].fileno(), True)
    Wire(pair[1].fileno())
    assert not os.get_inheritable(pair[1].fileno())


async def test_request_and_answer(pair: tuple[socket.socket, socket.socket]) -> None:
    link = await Link.over(pair[0].dup())
    supervisor = Wire(pair[1].fileno())
    await link.send({"op": "x", "flag": True}, b"body")
    header, body = await asyncio.to_thread(supervisor.recv)
    assert (header, body.read(4)) == ({"op": b"x", "flag": 1, "size": 4}, b"body")
    await asyncio.to_thread(supervisor.send, {"ok": 1, "size": 3}, [b"a", b"bc"])
    assert await link.recv(5, max_body=3) == ({"ok": 1, "size": 3}, b"abc")
    link.close()


async def test_a_refusal_leaves_the_link_open(pair: tuple[socket.socket, socket.socket]) -> None:
    link = await Link.over(pair[0].dup())
    pair[1].sendall(wire.pack({"error": "bad_path", "detail": "../x"}))
    with pytest.raises(Refused) as refused:
        await link.recv(5)
    assert (refused.value.reason, refused.value.detail, link.open) == ("bad_path", "../x", True)
    link.close()


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "supervisor_silent"),
        (b"\xff\xff\xff\xff", "supervisor_garbled"),
        (b"\0\0\0\x03abc", "supervisor_garbled"),
        (wire.pack({"size": 11}), "supervisor_garbled"),
        (wire.pack({"size": -1}), "supervisor_garbled"),
        (wire.pack({"size": 5}) + b"abc", "supervisor_silent"),
    ],
)
async def test_what_cannot_be_trusted_closes_the_link(
    pair: tuple[socket.socket, socket.socket], sent: bytes, reason: str
) -> None:
    link = await Link.over(pair[0].dup())
    pair[1].sendall(sent)
    with pytest.raises(SandboxLost) as lost:
        await link.recv(0.2, max_body=10)
    assert lost.value.reason == reason
    assert not link.open
    with pytest.raises(SandboxLost):
        await link.send({"op": "x"})


async def test_a_supervisor_that_ends_is_noticed(pair: tuple[socket.socket, socket.socket]) -> None:
    link = await Link.over(pair[0].dup())
    pair[0].close()
    pair[1].close()
    with pytest.raises(SandboxLost) as lost:
        await link.recv(5)
    assert lost.value.reason == "supervisor_gone"
    assert not link.open
    link.close()


async def test_cancelling_a_wait_closes_the_link(pair: tuple[socket.socket, socket.socket]) -> None:
    link = await Link.over(pair[0].dup())
    waiting = asyncio.create_task(link.recv(30))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not link.open
