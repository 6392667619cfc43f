"""`Idempotency-Key`: the first answer of a POST is stored, and a retry gets it again.

Invariants:
* one key means one request: another body under the same key (route, caller) is refused with 422;
* of requests with one key that arrive together, one works and the others wait for its answer, or get 409;
* only a success is stored: a refusal had no effect, so trying it again is safe;
* work is given a `seed` made of key and body, so that ids derived from it are the same in every process: a
  crash between effect and record, or a race between two replicas, still leads to one effect.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog
from fastapi import Response
from pydantic import BaseModel, ValidationError

from sandpiper.clock import Clock
from sandpiper.store.errors import StoreError
from sandpiper.store.objects import ObjectStore
from services.api.problems import ProblemError, conflict, invalid

PREFIX = "idempotency"
KEPT_HEADERS = ("content-type", "location")
Work = Callable[[str | None], Awaitable[Response]]

log = structlog.get_logger()


class Record(BaseModel):
    """A stored answer."""

    fingerprint: str
    status: int
    headers: dict[str, str]
    body: str
    created_at: float

    @classmethod
    def of(cls, response: Response, fingerprint: str, now: float) -> Record:
        headers = {name: value for name, value in response.headers.items() if name in KEPT_HEADERS}
        body = bytes(response.body).decode()
        return cls(
            fingerprint=fingerprint, status=response.status_code, headers=headers, body=body, created_at=now
        )

    def response(self) -> Response:
        return Response(self.body, self.status, {**self.headers, "Idempotency-Replayed": "true"})


@dataclass
class _Turn:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class Replays:
    """Stored answers in the object store, under a hash of key, route and caller."""

    def __init__(self, objects: ObjectStore, clock: Clock, ttl_s: float, wait_s: float) -> None:
        self._objects, self._clock = objects, clock
        self._ttl_s, self._wait_s = ttl_s, wait_s
        self._turns: dict[str, _Turn] = {}

    async def answer(
        self, key: str | None, route: str, caller: str, fingerprint: str, work: Work
    ) -> Response:
        """The stored answer of this request, or that of `work(seed)`; without a key just the latter."""
        if key is None:
            return await work(None)
        _check(key)
        digest = _digest(key, route, caller)
        async with self._turn(digest):
            record = await self._record(digest)
            if record is not None and record.fingerprint != fingerprint:
                raise ProblemError(
                    422, "idempotency-key-reused", "this Idempotency-Key was used for another request body"
                )
            if record is not None:
                return record.response()
            response = await work(_digest(digest, fingerprint))
            if response.status_code < 300:
                await self._keep(digest, Record.of(response, fingerprint, self._clock.time()))
            return response

    async def sweep(self, limit: int = 1000) -> int:
        """Delete answers past their time; looks at `limit` of them. Returns how many went."""
        gone = 0
        for key in (await self._objects.list(f"{PREFIX}/"))[:limit]:
            if await self._record(key.removeprefix(f"{PREFIX}/")) is None:
                await self._objects.delete(key)
                gone += 1
        return gone

    @asynccontextmanager
    async def _turn(self, digest: str) -> AsyncIterator[None]:
        turn = self._turns.setdefault(digest, _Turn())
        turn.users += 1
        try:
            try:
                await asyncio.wait_for(turn.lock.acquire(), self._wait_s)
            except TimeoutError:
                raise conflict("a request with this Idempotency-Key is still in progress") from None
            try:
                yield
            finally:
                turn.lock.release()
        finally:
            turn.users -= 1
            if not turn.users:
                self._turns.pop(digest, None)

    async def _record(self, digest: str) -> Record | None:
        data = await self._objects.read(f"{PREFIX}/{digest}")
        if data is None:
            return None
        try:
            record = Record.model_validate_json(data)
        except ValidationError:
            return None
        return record if self._clock.time() - record.created_at < self._ttl_s else None

    async def _keep(self, digest: str, record: Record) -> None:
        try:
            await self._objects.put(f"{PREFIX}/{digest}", record.model_dump_json().encode())
        except StoreError as error:
            # The effect is done and its ids are derived from the key: a retry will find it.
            log.warning("idempotency_record_lost", error=str(error))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


def _check(key: str) -> None:
    if not 1 <= len(key) <= 255 or not key.isascii() or not key.isprintable():
        raise invalid("Idempotency-Key: want 1 to 255 printable ASCII characters")
