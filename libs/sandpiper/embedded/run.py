"""Runs a stack in this process until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
import sys

from sandpiper.embedded.errors import StackError
from sandpiper.embedded.options import StackOptions
from sandpiper.embedded.stack import EmbeddedStack

HURRY_GRACE_S = 0.5


def run(options: StackOptions) -> int:
    """Start, wait for SIGINT, SIGTERM or SIGHUP, stop. Exit status: 0, or 1 when the stack did not start.

    A second signal while stopping cuts the grace of the services short.
    """
    try:
        asyncio.run(_run(EmbeddedStack(options)))
    except StackError as error:
        print(f"sandpiper: {error}", file=sys.stderr)
        return 1
    return 0


async def _run(stack: EmbeddedStack) -> None:
    signals: asyncio.Queue[None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, signals.put_nowait, None)
    starting = asyncio.create_task(stack.start())
    if not await _first(starting, signals):
        return
    await signals.get()
    stopping = asyncio.create_task(stack.stop())
    if not await _first(stopping, signals):
        await stack.stop(HURRY_GRACE_S)


async def _first(work: asyncio.Task[None], signals: asyncio.Queue[None]) -> bool:
    """True when `work` ends (its error is raised); False when a signal comes first, which cancels it."""
    asked = asyncio.create_task(signals.get())
    await asyncio.wait([work, asked], return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        asked.cancel()
        work.result()
        return True
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    return False
