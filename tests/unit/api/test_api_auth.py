"""API keys, loopback, and what a web page may not make a browser do."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.api.keys import BadKeysFile, KeyRing, is_loopback, read_keys_file
from services.api.settings import HttpSettings
from tests.unit.api.api_fakes import client_of, make_services

DIGEST = hashlib.sha256(b"secret").hexdigest()


async def test_a_key_is_wanted_where_there_are_keys(sessions: Any, tmp_path: Path) -> None:
    services = make_services(sessions, tmp_path, keys=KeyRing({"anna": DIGEST}))
    async with client_of(services) as client:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic secret"}):
            answer = await client.get("/v1/runs", headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.headers["content-type"] == "application/problem+json"
        good = await client.get("/v1/runs", headers={"authorization": "Bearer secret"})
        assert good.status_code == 200
        assert (await client.get("/healthz")).status_code == 200


async def test_every_v1_route_wants_a_key(sessions: Any, tmp_path: Path) -> None:
    services = make_services(sessions, tmp_path, keys=KeyRing({"anna": DIGEST}))
    async with client_of(services) as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
        checked = 0
        for path, operations in paths.items():
            if not path.startswith("/v1"):
                continue
            url = path.replace("{verb}", "pause").replace("{number}", "0").replace("{version}", "0")
            url = "/".join("x" if part.startswith("{") else part for part in url.split("/"))
            for method in operations:
                answer = await client.request(method, url, params={"run": "x"})
                assert answer.status_code == 401, (method, path, answer.text)
                checked += 1
        assert checked >= 15


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "localhost:8080"}, 200),
        ({"host": "[::1]:8080"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:3000"}, 200),
    ],
)
async def test_without_keys_only_this_machine_is_served(
    client: httpx.AsyncClient, headers: dict[str, str], status: int
) -> None:
    assert (await client.get("/v1/runs", headers=headers)).status_code == status


def test_no_keys_only_on_loopback() -> None:
    assert HttpSettings(host="127.0.0.1").key_ring().open
    assert not HttpSettings(host="0.0.0.0", keys={"anna": DIGEST}).key_ring().open
    with pytest.raises(ValueError, match="without API keys"):
        HttpSettings(host="0.0.0.0").key_ring()


@pytest.mark.parametrize(
    ("hosts", "loopback"),
    [
        (("127.0.0.1", "127.9.9.9", "::1", "localhost"), True),
        (("0.0.0.0", "::", "10.0.0.1", "example.org", ""), False),
    ],
)
def test_loopback(hosts: tuple[str, ...], loopback: bool) -> None:
    assert {is_loopback(host) for host in hosts} == {loopback}


def test_keys_file(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# who may call\nanna {DIGEST}  # since May\n\n")
    assert read_keys_file(path) == {"anna": DIGEST}
    assert HttpSettings(host="0.0.0.0", keys_file=path).key_ring().caller("secret") == "anna"
    for bad in ("anna", f"anna {DIGEST} x", "anna nothex", f"A {DIGEST}", f"anna {DIGEST}\nanna {DIGEST}"):
        path.write_text(bad)
        with pytest.raises(BadKeysFile, match="line"):
            read_keys_file(path)


def test_a_ring_knows_only_its_keys() -> None:
    ring = KeyRing({"anna": DIGEST})
    assert ring.caller("secret") == "anna"
    assert ring.caller("Secret") is None
    assert ring.caller(None) is None
    assert ring.caller(DIGEST) is None, "the hash is not the key"
    with pytest.raises(BadKeysFile):
        KeyRing({"anna": "secret"})
