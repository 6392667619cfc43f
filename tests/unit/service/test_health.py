"""The health server answers what it is asked and outlives clients that misbehave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest

from sandpiper import health as module
from sandpiper.health import Health, HealthServer


@pytest.fixture
async def served() -> AsyncIterator[tuple[Health, str, int]]:
    """A running server."""
    health, server = Health(), None
    server = HealthServer(health)
    port = await server.start("127.0.0.1", 0)
    yield health, f"http://127.0.0.1:{port}", port
    await server.stop()


async def test_ready_when_started_and_all_checks_pass(served: tuple[Health, str, int]) -> None:
    health, url, _ = served
    answers = {"bus": True}

    async def slow() -> bool:
        await asyncio.sleep(0)
        return True

    health.add("bus", lambda: answers["bus"])
    health.add("db", slow)
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"{url}/healthz")).status_code == 200
        assert (await client.get(f"{url}/readyz")).json()["started"] is False
        health.started = True
        ready = await client.get(f"{url}/readyz")
        assert (ready.status_code, ready.json()) == (
            200,
            {"started": True, "not_stopping": True, "bus": True, "db": True},
        )
        answers["bus"] = False
        assert (await client.get(f"{url}/readyz")).status_code == 503
        del answers["bus"]  # the check raises
        assert (await client.get(f"{url}/readyz")).json()["bus"] is False
        health.stopping = True
        assert (await client.get(f"{url}/healthz")).status_code == 200


async def test_a_check_that_hangs_is_not_ready(
    served: tuple[Health, str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    health, url, _ = served
    monkeypatch.setattr(module, "CHECK_S", 0.05)
    health.started = True

    async def hang() -> bool:
        await asyncio.sleep(60)
        return True

    health.add("db", hang)
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{url}/readyz?verbose=1")
    assert (answer.status_code, json.loads(answer.content)["db"]) == (503, False)


async def test_metrics_and_what_is_not_there(served: tuple[Health, str, int]) -> None:
    _, url, _ = served
    async with httpx.AsyncClient() as client:
        metrics = await client.get(f"{url}/metrics")
        assert "sandpiper_messages_consumed_total" in metrics.text
        assert metrics.headers["content-type"].startswith("text/plain")
        assert (await client.get(f"{url}/other")).status_code == 404
        assert (await client.post(f"{url}/healthz")).status_code == 405


@pytest.mark.parametrize(
    "sent", [b"", b"\r\n\r\n", b"GET\r\n\r\n", b"x" * 20_000 + b"\r\n\r\n", b"\xff\xfe \x00\r\n\r\n"]
)
async def test_clients_that_do_not_speak_http_are_dropped(
    served: tuple[Health, str, int], sent: bytes
) -> None:
    _, url, port = served
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    writer.write_eof()
    assert (await asyncio.wait_for(reader.read(), 5)) == b""
    writer.close()
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"{url}/healthz")).text == "ok\n"
