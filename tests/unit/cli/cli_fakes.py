"""An API made of canned answers, and the documents that it gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx

Answer = Callable[[httpx.Request], httpx.Response]


def problem(status: int, detail: str, **extra: Any) -> httpx.Response:
    body = {"type": "urn:sandpiper:problem:x", "title": "X", "status": status, "detail": detail, **extra}
    return httpx.Response(status, json=body, headers={"content-type": "application/problem+json"})


class FakeApi:
    """Routes by `METHOD /path`; remembers every request. A list of answers is used up one by one."""

    def __init__(self, **routes: Any) -> None:
        self.routes: dict[str, Any] = {}
        self.requests: list[httpx.Request] = []

    def on(self, route: str, *answers: Any) -> None:
        self.routes[route] = list(answers)

    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._handle)

    def bodies(self, route: str) -> list[bytes]:
        method, path = route.split()
        return [r.content for r in self.requests if r.method == method and r.url.path == path]

    def _handle(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        answers = self.routes.get(f"{request.method} {request.url.path}")
        if not answers:
            return problem(404, f"nothing at {request.url.path}")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer = answer(request)
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)


def page(*items: Any, cursor: str | None = None) -> dict[str, Any]:
    return {"items": list(items), "next_cursor": cursor}


def run_data(ident: str = "run-1", state: str = "running", **changes: Any) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": ident,
        "name": "mine",
        "mode": "train",
        "state": state,
        "reason": None,
        "task_set_id": "ts-1",
        "policy_run_id": ident,
        "policy_version": 1,
        "step": 1,
        "steps_budget": 8,
        "requested_by": "local",
        "created_at": 1.0,
        "started_at": 2.0,
        "finished_at": None,
        "document": {},
        "episodes": {
            "total": 4,
            "by_state": {"trained": 4},
            "in_flight": 0,
            "graded": 4,
            "passed": 2,
            "failed": 0,
        },
        "progress": {
            "done": 0.125,
            "pass_rate": 0.5,
            "mean_reward": 0.25,
            "recent_pass_rate": 0.5,
            "recent_reward": 0.25,
            "recent_output_tokens": 30.0,
            "tokens_per_s": 120.0,
            "output_tokens": 1000,
            "staleness_mean": 0.5,
            "staleness_max": 1,
            "expected_episodes": None,
            "elapsed_s": 65.0,
            "remaining_s": 3700.0,
        },
        "recent_steps": [
            {
                "step": 1,
                "policy_version": 1,
                "metrics": {"loss": 0.1},
                "started_at": 3.0,
                "seconds": 20.0,
                "recorded_at": 30.0,
            }
        ],
        "policies": [],
        "trace_id": "a" * 32,
    }
    return {**data, **changes}


def episode_data(ident: str = "ep-1", **changes: Any) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": ident,
        "run_id": "run-1",
        "group_id": "g-1",
        "index": 0,
        "task_id": "add-1",
        "state": "graded",
        "reason": None,
        "attempt": 1,
        "turn": 0,
        "reward": 1.0,
        "passed": True,
        "verdict": "passed",
        "version_min": 0,
        "version_max": 1,
        "output_tokens": 20,
        "trained_step": None,
        "executor_id": "exec-1",
        "trace_id": "c" * 32,
        "created_at": 1.0,
        "stage_at": 5.0,
        "finished_at": None,
    }
    return {**data, **changes}


def turn_data(**changes: Any) -> dict[str, Any]:
    data: dict[str, Any] = {
        "attempt": 1,
        "number": 0,
        "messages": [{"role": "user", "content": "x" * 1000 + " the end of the prompt"}],
        "text": "[bold]not markup[/bold]\x1b[2J",
        "finish_reason": "stop",
        "prompt_tokens": 10,
        "output_tokens": 5,
        "version_min": 0,
        "version_max": 1,
        "engine": "torch",
        "action": {"kind": "run", "files": {"solution.py": "secret body"}, "argv": ["python"]},
        "outcome": "nonzero_exit",
        "exit_code": 1,
        "usage": {"wall_s": 0.2, "memory_peak_bytes": 1e7},
        "observation": "1 failed",
        "has_log": True,
        "snapshot_sha256": None,
        "executor_id": "exec-1",
        "requested_at": 1.0,
        "generated_at": 2.0,
        "executed_at": 3.0,
        "generate_s": 0.8,
        "generate_queued_s": 0.1,
    }
    return {**data, **changes}


def body_of(request: httpx.Request) -> Any:
    return json.loads(request.content)
