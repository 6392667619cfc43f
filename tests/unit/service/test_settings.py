"""Settings come from the environment; whatever is wrong there is named, and no value is shown."""

from __future__ import annotations

import pytest

from sandpiper.settings import ServiceSettings, SettingsError, load, unknown_variables


class Mine(ServiceSettings):
    """A service with a field of its own."""

    slots: int = 4


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings from outside."""
    import os  # noqa: PLC0415

    for name in list(os.environ):
        if name.startswith("SANDPIPER_"):
            monkeypatch.delenv(name)


def test_defaults_and_nested_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(Mine).bus.bootstrap == "127.0.0.1:9092"
    monkeypatch.setenv("SANDPIPER_BUS__BOOTSTRAP", "kafka:9092")
    monkeypatch.setenv("SANDPIPER_BUS__BROKER", "tansu")
    monkeypatch.setenv("SANDPIPER_OBJECTS__SECRET_KEY", "hush")
    monkeypatch.setenv("SANDPIPER_SLOTS", "9")
    loaded = load(Mine)
    assert (loaded.bus.bootstrap, loaded.bus.fetch_wait_ms, loaded.slots) == ("kafka:9092", 200, 9)
    assert loaded.objects.secret_key.get_secret_value() == "hush"
    assert "hush" not in repr(loaded)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SANDPIPER_BUS__BOOTSTARP", "secret-value"),
        ("SANDPIPER_BUS__BROKER", "secret-value"),
        ("SANDPIPER_SLOTS", "secret-value"),
        ("SANDPIPER_LOG_LEVEL", "secret-value"),
        ("SANDPIPER_HEALTH_PORT", "99999999"),
    ],
)
def test_what_is_wrong_is_named_without_its_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load(Mine)
    assert name in str(caught.value)
    assert value not in str(caught.value)


def test_a_nested_value_that_is_no_json_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDPIPER_BUS", "kafka:9092")
    with pytest.raises(SettingsError, match="SANDPIPER_BUS"):
        load(Mine)


def test_variables_that_nobody_reads_are_pointed_out() -> None:
    environ = dict.fromkeys(
        [
            "SANDPIPER_SLOTS",
            "sandpiper_bus__broker",
            "SANDPIPER_SLOT",
            "SANDPIPER_BUSS__BROKER",
            "SANDPIPER_X",
            "PATH",
        ]
    )
    assert unknown_variables(Mine, dict.fromkeys(environ, "")) == [
        "SANDPIPER_BUSS__BROKER is not a setting of this service (did you mean SANDPIPER_BUS__BROKER?)",
        "SANDPIPER_SLOT is not a setting of this service (did you mean SANDPIPER_SLOTS?)",
        "SANDPIPER_X is not a setting of this service",
    ]
