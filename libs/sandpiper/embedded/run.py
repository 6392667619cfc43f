"""Runs a stack in this process until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable

from sandpiper.embedded.errors import StackError
from sandpiper.embedded.options import StackOptions
from sandpiper.embedded.stack import EmbeddedStack

HURRY_GRACE_S = 0.5


def run(options: StackOptions, on_ready: Callable[[EmbeddedStack], None] | None = None) -> int:
    """Start, wait for SIGINT/SIGTERM/SIGHUP, stop. Exit status: 0, or 1 when the stack did not start.

    A second signal while stopping cuts the grace of the services short.
    """
    try:
        asyncio.run(_run(EmbeddedStack(options), on_ready))
    except StackError as error:
        print(f"sandpiper: {error}", file=sys.stderr)
        return 1
    return 0


async def _run(stack: EmbeddedStack, on_ready: Callable[[EmbeddedStack], None] | None) -> None:
    signals: asyncio.Queue[None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, signals.put_nowait, None)
    asked = asyncio.create_task(signals.get())
    starting = asyncio.create_task(stack.start())
    await asyncio.wait([asked, starting], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return
    try:
        starting.result()
    except BaseException:
        asked.cancel()
        raise
    if on_ready is not None:
        on_ready(stack)
    await asked
    await _stop(stack, signals)


async def _stop(stack: EmbeddedStack, signals: asyncio.Queue[None]) -> None:
    stopping = asyncio.create_task(stack.stop())
    again = asyncio.create_task(signals.get())
    await asyncio.wait([stopping, again], return_when=asyncio.FIRST_COMPLETED)
    again.cancel()
    if not stopping.done():
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
        await stack.stop(HURRY_GRACE_S)
    else:
        stopping.result()
