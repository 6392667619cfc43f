"""HTTP with retries: GETs, and POSTs that carry an `Idempotency-Key`, are safe to send again.

Invariants: nothing is retried that could happen twice; retrying ends after `retry_s`; every failure is a
`ClientError`.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from sandpiper.cli.errors import ApiError, Unreachable

AGAIN = {429, 502, 503, 504}
Json = dict[str, Any]
Content = Callable[[], Any] | None
"""Makes the body anew for every try."""


class Transport:
    """One base URL."""

    def __init__(
        self,
        url: str,
        api_key: str | None,
        timeout_s: float,
        retry_s: float,
        transport: httpx.BaseTransport | None,
    ) -> None:
        self.url = url.rstrip("/")
        self._retry_s = retry_s
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.Client(
            base_url=self.url,
            headers={**headers, "User-Agent": "sandpiper"},
            timeout=httpx.Timeout(timeout_s, connect=5.0),
            transport=transport,
            trust_env=False,
        )

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, **params: Any) -> Any:
        """The JSON of a GET; parameters that are None are left out."""
        present = {name: value for name, value in params.items() if value is not None}
        return self._json(self._send("GET", path, params=present))

    def text(self, path: str, **params: Any) -> str:
        """The text of a GET."""
        present = {name: value for name, value in params.items() if value is not None}
        return self._send("GET", path, params=present).text

    def post(
        self,
        path: str,
        content: Content = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        **params: Any,
    ) -> Any:
        """The JSON of a POST, sent with a fresh `Idempotency-Key`."""
        present = {name: value for name, value in params.items() if value is not None}
        keyed = {"Idempotency-Key": uuid.uuid4().hex, **(headers or {})}
        extra = {} if timeout_s is None else {"timeout": timeout_s}
        return self._json(self._send("POST", path, content, params=present, headers=keyed, **extra))

    @contextmanager
    def stream(
        self, path: str, headers: Mapping[str, str] | None = None, read_s: float = 60.0
    ) -> Iterator[httpx.Response]:
        """A GET whose body is read bit by bit, with at most `read_s` of silence."""
        timeout = httpx.Timeout(read_s, connect=5.0)
        try:
            with self._http.stream("GET", path, headers=dict(headers or {}), timeout=timeout) as response:
                if response.status_code >= 400:
                    response.read()
                    raise _refused(response)
                yield response
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    def _send(self, method: str, path: str, content: Content = None, **arguments: Any) -> httpx.Response:
        ends = time.monotonic() + self._retry_s
        pause = 0.2
        while True:
            try:
                body = content() if content else None
                response = self._http.request(method, path, content=body, **arguments)
            except httpx.HTTPError as error:
                if time.monotonic() + pause > ends:
                    raise self._unreachable(error) from error
            else:
                if response.status_code < 400:
                    return response
                if response.status_code not in AGAIN or time.monotonic() + pause > ends:
                    raise _refused(response)
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, 2.0)

    def _json(self, response: httpx.Response) -> Any:
        try:
            return response.json()
        except ValueError as error:
            raise Unreachable(f"{self.url} answers, but not like the Sandpiper API") from error

    def _unreachable(self, error: httpx.HTTPError) -> Unreachable:
        reason = str(error) or type(error).__name__
        return Unreachable(
            f"no answer from the API at {self.url} ({reason}); start one with `sandpiper up`, or name it "
            "with --api URL or SANDPIPER_API"
        )


def _refused(response: httpx.Response) -> ApiError:
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    return ApiError(response.status_code, problem or {"detail": response.reason_phrase})
