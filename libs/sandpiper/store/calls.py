"""Blocking calls of a remote store from an event loop: in threads, retried, bounded.

Invariants:
* at most `connections` calls run at once, and none blocks the loop;
* a call ends within its deadline, which leaves out the wait for a thread while the store answers others (a
  fan-out of thousands is slow, not an outage);
* only `StoreUnavailable` is retried, with jittered backoff.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from time import monotonic
from typing import TypeVar

from sandpiper.store.errors import StoreError, StoreUnavailable
from sandpiper.store.settings import ObjectSettings

R = TypeVar("R")
BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 2.0


class Calls:
    """Runs blocking calls of one store."""

    def __init__(self, settings: ObjectSettings, rng: random.Random) -> None:
        self._settings = settings
        self._rng = rng
        self._threads = ThreadPoolExecutor(settings.connections, thread_name_prefix="objects")
        self._slots = asyncio.Semaphore(settings.connections)
        self._answered = float("-inf")
        """When the store last answered anything (monotonic seconds)."""

    def close(self) -> None:
        """Drop what waits. Calls that run end by their own timeouts."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, call: Callable[[], R], size: int = 0, deadline: float | None = None) -> R:
        """Run `call` in a thread, again and again until it answers or its deadline has passed."""
        budget = (deadline or self._settings.deadline_s) + size / self._settings.min_bytes_per_s
        left, pause = budget, BACKOFF_FIRST_S
        while True:
            async with self._turn():
                began = monotonic()
                try:
                    return await self._attempt(call, left)
                except TimeoutError as error:
                    raise StoreUnavailable(
                        f"{self._settings.endpoint}: no answer in {budget:.1f} s"
                    ) from error
                except StoreUnavailable as error:
                    wait = pause * self._rng.uniform(0.5, 1.5)
                    left -= monotonic() - began + wait
                    if left <= 0:
                        raise StoreUnavailable(f"gave up after {budget:.1f} s: {error}") from error
            await asyncio.sleep(wait)
            pause = min(pause * 2, BACKOFF_MAX_S)

    async def _attempt(self, call: Callable[[], R], seconds: float) -> R:
        try:
            async with asyncio.timeout(seconds):
                result = await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except (StoreUnavailable, TimeoutError):
            raise
        except StoreError:
            self._answered = monotonic()
            raise
        self._answered = monotonic()
        return result

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for one of the `connections`: as long as the store answers others, else for one deadline."""
        patience = self._settings.deadline_s
        while True:
            try:
                async with asyncio.timeout(patience):
                    await self._slots.acquire()
                break
            except TimeoutError as error:
                if monotonic() - self._answered > patience:
                    message = f"{self._settings.endpoint}: no answer to any request in {patience:.1f} s"
                    raise StoreUnavailable(message) from error
        try:
            yield
        finally:
            self._slots.release()
