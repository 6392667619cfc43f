"""What becomes of a message whose handler fails, and how."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from sandpiper.bus.backoff import Backoff, wait_or_stop
from sandpiper.bus.errors import Reject, Retry, Undeliverable
from sandpiper.bus.handling import Handling
from sandpiper.bus.message import Headers, Received
from sandpiper.bus.records import Stopping
from sandpiper.clock import SystemClock
from sandpiper.topics import RUN_COMMANDS
from sandpiper.v1.run_pb2 import RunCommand

RECORD: Any = SimpleNamespace(topic=RUN_COMMANDS.name, timestamp=0)


class FakeRecords:
    """Decodes to one message; keeps dead letters."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.dead: list[tuple[str, int]] = []
        self.good = 0

    async def decode(self, record: Any) -> Received[Any]:
        if self.failures:
            raise self.failures.pop(0)
        return Received(RUN_COMMANDS, RunCommand(), Headers("m"), "k", 0, 0, 0.0)

    async def dead_letter(self, record: Any, reason: str, detail: str, tries: int) -> None:
        self.dead.append((reason, tries))

    def handled(self, record: Any) -> None:
        self.good += 1


def handling(
    handler: Any, records: Any, stopping: asyncio.Event | None = None, retry_for_s: float = 60
) -> Handling:
    return Handling(
        {RUN_COMMANDS.name: handler},
        records,
        stopping or asyncio.Event(),
        SystemClock(),
        max_tries=3,
        retry_for_s=retry_for_s,
        backoff=Backoff(0.001, 0.002),
    )


def failing(*errors: Exception | None) -> Any:
    """A handler that raises these, one per call, the last for ever."""
    left = list(errors)

    async def handler(received: Received[Any]) -> None:
        error = left.pop(0) if len(left) > 1 else left[0]
        if error is not None:
            raise error

    return handler


@pytest.mark.parametrize(
    ("handler", "dead", "good"),
    [
        (failing(None), [], 1),
        (failing(ValueError(), ValueError(), None), [], 1),
        (failing(ValueError()), [("handler_error", 3)], 0),
        (failing(*[Retry()] * 20, None), [], 1),
        (failing(Reject("expired", "late")), [("expired", 1)], 0),
        (failing(ValueError(), Reject()), [("handler_error", 2)], 0),
        (failing(asyncio.CancelledError(), None), [], 1),  # type: ignore[arg-type]
        (failing(asyncio.CancelledError()), [("handler_error", 3)], 0),  # type: ignore[arg-type]
    ],
)
async def test_ends(handler: Any, dead: list[Any], good: int) -> None:
    records = FakeRecords()
    await handling(handler, records).finish(RECORD)
    assert (records.dead, records.good) == (dead, good)


async def test_what_cannot_be_decoded_never_reaches_the_handler() -> None:
    records = FakeRecords(Undeliverable("unparseable", "x"))
    await handling(failing(AssertionError()), records).finish(RECORD)
    assert records.dead == [("unparseable", 1)]


async def test_a_claim_store_that_is_away_is_waited_for() -> None:
    records = FakeRecords(*[ConnectionError()] * 10)
    await handling(failing(None), records).finish(RECORD)
    assert (records.dead, records.good) == ([], 1)


async def test_even_an_outage_is_given_up_at_last() -> None:
    records = FakeRecords()
    await handling(failing(Retry()), records, retry_for_s=0.02).finish(RECORD)
    assert records.dead[0][0] == "handler_error"


async def test_a_stop_leaves_a_message_that_waits_for_its_next_try() -> None:
    stopping, records = asyncio.Event(), FakeRecords()
    stopping.set()
    with pytest.raises(Stopping):
        await handling(failing(Retry()), records, stopping).finish(RECORD)
    assert (records.dead, records.good) == ([], 0)


async def test_a_cancellation_from_outside_is_one() -> None:
    started = asyncio.Event()

    async def handler(received: Received[Any]) -> None:
        started.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(handling(handler, FakeRecords()).finish(RECORD))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_pauses_grow_to_a_limit_with_jitter() -> None:
    backoff = Backoff(0.1, 5.0)
    pauses = [backoff.pause(tries) for tries in range(1, 100)]
    for tries, pause in enumerate(pauses, 1):
        base = min(5.0, 0.1 * 2 ** (tries - 1))
        assert base / 2 <= pause <= base
    assert len(set(pauses)) > 50


async def test_a_wait_ends_early_when_stopping() -> None:
    stopping = asyncio.Event()
    assert not await wait_or_stop(stopping, 0.001)
    asyncio.get_running_loop().call_later(0.01, stopping.set)
    assert await wait_or_stop(stopping, 60)
