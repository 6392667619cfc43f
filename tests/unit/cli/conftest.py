"""The `sandpiper` command over a fake API."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner, Result

from sandpiper.cli import transport
from sandpiper.cli.client import SandpiperClient
from sandpiper.cli.context import Connection
from sandpiper.cli.main import app
from tests.unit.cli.cli_fakes import FakeApi

Command = Callable[..., Result]


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def client(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[SandpiperClient]:
    monkeypatch.setattr(transport.time, "sleep", lambda _: None)
    with SandpiperClient("http://api", retry_s=5, transport=api.transport()) as made:
        yield made


@pytest.fixture
def command(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `sandpiper …`; answers come from `api`."""
    monkeypatch.setattr(transport.time, "sleep", lambda _: None)

    def connect(self: Connection) -> SandpiperClient:
        return SandpiperClient("http://api", self.api_key, retry_s=0, transport=api.transport())

    monkeypatch.setattr(Connection, "client", connect)

    def call(*arguments: str, input: str | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=input)

    return call
