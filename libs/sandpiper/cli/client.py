"""A client of the HTTP API: what the `sandpiper` command, scripts and tests use.

    with SandpiperClient("http://127.0.0.1:8080") as client:
        task_set = client.submit_task_set("examples/tasks/starter")
        run = client.create_run({"name": "mine", "tasks": {"task_set": task_set["id"]}})
        done = client.wait_run(run["id"], timeout_s=900)
        for episode in client.episodes(run["id"], passed=True):
            ...

Answers are the API's JSON as dicts. Failures are `sandpiper.cli.errors.ClientError`s.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from sandpiper.cli.errors import ApiError, Unreachable, WaitTimeout
from sandpiper.cli.events import Event, parse_events
from sandpiper.cli.export import Progress, export_policy
from sandpiper.cli.pack import open_upload
from sandpiper.cli.transport import Json, Transport

TERMINAL = ("succeeded", "failed", "cancelled")
PAGE = 200
PATIENCE_S = 60.0


class SandpiperClient:
    """Calls the API. Safe to use from one thread at a time."""

    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        *,
        timeout_s: float = 30.0,
        retry_s: float = 10.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`retry_s`: how long a request is tried again while the API is away or not ready."""
        self._http = Transport(url, api_key, timeout_s, retry_s, transport)
        self.url = self._http.url

    def __enter__(self) -> SandpiperClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop the connections."""
        self._http.close()

    # Task sets

    def submit_task_set(
        self,
        path: str | Path,
        *,
        name: str | None = None,
        version: str | None = None,
        timeout_s: float = 120.0,
    ) -> Json:
        """Upload a folder, `.jsonl` or `.tar.zst`; returns the task set once it can be used."""
        with open_upload(Path(path)) as (file, media_type):

            def content() -> Iterator[bytes]:
                file.seek(0)
                return iter(lambda: file.read(1 << 20), b"")

            headers = {"Content-Type": media_type}
            made = self._http.post(
                "/v1/task-sets", content, headers, timeout_s=timeout_s, name=name, version=version
            )
        return self._visible(f"/v1/task-sets/{made['id']}", timeout_s)

    def task_sets(self, name: str | None = None) -> Iterator[Json]:
        """Newest first."""
        return self._pages("/v1/task-sets", name=name)

    def task_set(self, reference: str) -> Json:
        """By id, `name` or `name@version`."""
        return self._one(f"/v1/task-sets/{reference}")

    def tasks(self, reference: str, *, split: str | None = None, family: str | None = None) -> Iterator[Json]:
        """In the order of the set."""
        return self._pages(f"/v1/task-sets/{reference}/tasks", split=split, family=family)

    # Runs

    def create_run(self, document: Mapping[str, Any], timeout_s: float = 60.0) -> Json:
        """Start a run; returns it once it is visible."""
        body = json.dumps(document).encode()
        made = self._http.post("/v1/runs", lambda: body, {"Content-Type": "application/json"})
        return self._visible(f"/v1/runs/{made['id']}", timeout_s)

    def run(self, run_id: str) -> Json:
        """A run with its progress."""
        return self._one(f"/v1/runs/{run_id}")

    def runs(self, *, state: str | None = None, mode: str | None = None) -> Iterator[Json]:
        """Newest first."""
        return self._pages("/v1/runs", state=state, mode=mode)

    def steps(self, run_id: str) -> Iterator[Json]:
        """Optimizer steps, oldest first."""
        return self._pages(f"/v1/runs/{run_id}/steps")

    def pause_run(self, run_id: str) -> Json:
        return self._control(run_id, "pause")

    def resume_run(self, run_id: str) -> Json:
        return self._control(run_id, "resume")

    def cancel_run(self, run_id: str) -> Json:
        return self._control(run_id, "cancel")

    def wait_run(
        self,
        run_id: str,
        *,
        timeout_s: float | None = None,
        poll_s: float = 1.0,
        on_progress: Callable[[Json], None] | None = None,
    ) -> Json:
        """The run once it is over, in whatever way; look at its `state`. Raises `WaitTimeout`.

        An API that is away for less than a minute (a restart) does not end the waiting.
        """
        ends = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            found = self._patiently(lambda: self.run(run_id))
            if on_progress is not None:
                on_progress(found)
            if found["state"] in TERMINAL:
                return found
            if ends is not None and time.monotonic() + poll_s > ends:
                raise WaitTimeout(f"run {run_id} is still {found['state']} after {timeout_s:g} s")
            time.sleep(poll_s)

    def events(self, run_id: str, last_event_id: str | None = None) -> Iterator[Event]:
        """Live events until the run ends or the connection does; see the API's `/v1/runs/{id}/events`."""
        headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
        with self._http.stream(f"/v1/runs/{run_id}/events", headers) as response:
            yield from parse_events(response.iter_lines())

    # Episodes

    def episodes(
        self,
        run_id: str,
        *,
        state: str | None = None,
        task: str | None = None,
        passed: bool | None = None,
        trained_step: int | None = None,
        group: str | None = None,
        order: str = "newest",
        page: int = PAGE,
    ) -> Iterator[Json]:
        """Episodes of a run, fetched page by page as they are consumed."""
        return self._pages(
            f"/v1/runs/{run_id}/episodes",
            page,
            state=state,
            task=task,
            passed=passed,
            trained_step=trained_step,
            group=group,
            order=order,
        )

    def episode(self, episode_id: str) -> Json:
        """With attempts, turns, tests and reward parts."""
        return self._one(f"/v1/episodes/{episode_id}")

    def trajectory(self, episode_id: str) -> Json:
        """Token ids, mask, log-probabilities and versions."""
        return self._one(f"/v1/episodes/{episode_id}/trajectory")

    def log(self, episode_id: str, turn: int, attempt: int | None = None) -> str:
        """What the program of a turn wrote."""
        return self._http.text(f"/v1/episodes/{episode_id}/turns/{turn}/log", attempt=attempt)

    def snapshot(self, episode_id: str, turn: int | None = None) -> bytes:
        """The workspace after a turn (the newest by default), as tar.zst."""
        query = "" if turn is None else f"?turn={turn}"
        with self._http.stream(f"/v1/episodes/{episode_id}/snapshot{query}") as response:
            return response.read()

    # Policies

    def policies(self, run_id: str) -> Iterator[Json]:
        """Published versions, oldest first."""
        return self._pages("/v1/policies", run=run_id)

    def policy(self, run_id: str, version: int | None = None) -> Json:
        """The manifest of a version (the newest by default)."""
        if version is None:
            published = list(self.policies(run_id))
            if not published:
                raise ApiError(404, {"detail": f"run {run_id} has published no policy yet"})
            version = published[-1]["version"]
        return self._one(f"/v1/runs/{run_id}/policies/{version}")

    def export_policy(
        self, run_id: str, out: str | Path, version: int | None = None, progress: Progress | None = None
    ) -> Path:
        """Download a version as a folder that `transformers` loads, verified and in one step."""
        return export_policy(self._http, self.policy(run_id, version), Path(out), progress)

    # Operations

    def executors(self) -> Json:
        """Sandbox executors and their load."""
        return self._one("/v1/executors")

    def ready(self) -> Json:
        """Readiness of the API; raises `ApiError` (503) when it is not ready."""
        return self._one("/readyz")

    def _one(self, path: str) -> Json:
        found: Json = self._http.get(path)
        return found

    def _pages(self, path: str, page: int = PAGE, **params: Any) -> Iterator[Json]:
        cursor: str | None = None
        while True:
            found = self._http.get(path, **params, limit=page, cursor=cursor)
            yield from found["items"]
            cursor = found["next_cursor"]
            if cursor is None:
                return

    def _patiently(self, call: Callable[[], Json]) -> Json:
        ends = time.monotonic() + PATIENCE_S
        while True:
            try:
                return call()
            except (Unreachable, ApiError) as error:
                passing = isinstance(error, Unreachable) or error.status >= 500
                if not passing or time.monotonic() > ends:
                    raise
            time.sleep(1.0)

    def _control(self, run_id: str, verb: str) -> Json:
        self._http.post(f"/v1/runs/{run_id}/{verb}")
        return self.run(run_id)

    def _visible(self, path: str, timeout_s: float) -> Json:
        """What a POST has announced, once it is there."""
        ends = time.monotonic() + timeout_s
        while True:
            try:
                return self._one(path)
            except ApiError as error:
                if error.status != 404:
                    raise
            if time.monotonic() > ends:
                raise WaitTimeout(f"{path} did not appear in {timeout_s:g} s: is the orchestrator running?")
            time.sleep(0.2)
