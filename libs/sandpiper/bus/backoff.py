"""Exponential backoff with full jitter, and waits that a stop ends early."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Pauses between tries: uniform in [base/2, base] with base doubling up to `maximum` (seconds)."""

    initial: float = 0.1
    maximum: float = 5.0

    def pause(self, tries: int, rng: random.Random | None = None) -> float:
        """Seconds to wait after the `tries`-th failure (counting from 1)."""
        base = min(self.maximum, self.initial * 2.0 ** min(max(tries - 1, 0), 32))
        return (rng or _rng).uniform(base / 2, base)

    def pauses(self, rng: random.Random | None = None) -> Iterator[float]:
        """Endless pauses, growing up to the maximum."""
        tries = 0
        while True:
            tries += 1
            yield self.pause(tries, rng)


_rng = random.Random()


async def wait_or_stop(stopping: asyncio.Event, seconds: float) -> bool:
    """Wait `seconds`, or less when `stopping` is set; True when it is."""
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        return False
    return True
