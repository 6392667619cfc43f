"""Settings that every service has, from the environment.

`SANDPIPER_<FIELD>`, nested with two underscores: `SANDPIPER_BUS__BOOTSTRAP=kafka:9092`. A nested name that
does not exist is an error; a top-level one is a warning, since the services of a stack may share one
environment.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError as Malformed

from sandpiper.bus.settings import BusSettings
from sandpiper.store.settings import ObjectSettings

PREFIX = "SANDPIPER_"
S = TypeVar("S", bound="ServiceSettings")


class ServiceSettings(BaseSettings):
    """Base of each service's settings."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", hide_input_in_errors=True
    )

    bus: BusSettings = BusSettings()
    """The broker."""

    objects: ObjectSettings = ObjectSettings()
    """The object store."""

    database_url: str = "postgresql+asyncpg://sandpiper@127.0.0.1:5432/sandpiper"
    """Postgres, for the services that read or write it."""

    health_host: str = "127.0.0.1"
    """Address for `/healthz`, `/readyz` and `/metrics`."""

    health_port: int = Field(0, ge=0, le=65535)
    """Their port; 0 serves none."""

    data_dir: Path = Path(".sandpiper")
    """Where the service may keep files."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level that is logged."""

    start_s: float = Field(600.0, gt=0)
    """How long the service may take to start; after that it fails."""

    drain_s: float = Field(20.0, gt=0)
    """How long work in hand may go on after SIGTERM."""


class SettingsError(Exception):
    """The environment does not describe valid settings; the message names each variable."""


def load(settings: type[S]) -> S:
    """Settings from the environment. Raises SettingsError naming what is wrong, never a value."""
    try:
        return settings()
    except ValidationError as error:
        lines = [f"{_variable(problem['loc'])}: {problem['msg']}" for problem in error.errors()]
        raise SettingsError("; ".join(lines)) from None
    except Malformed as error:
        field = re.search(r'field "(\w+)"', str(error))
        name = _variable((field.group(1),)) if field else f"{PREFIX}*"
        raise SettingsError(f"{name}: not valid JSON") from None


def unknown_variables(settings: type[ServiceSettings], environ: Mapping[str, str] | None = None) -> list[str]:
    """What to say about `SANDPIPER_*` variables that this service does not know, one line each."""
    known = {f"{PREFIX}{name}".upper() for name in settings.model_fields}
    found = {name.upper() for name in (os.environ if environ is None else environ)}
    strange = sorted(
        name for name in found if name.startswith(PREFIX) and name.split("__", 1)[0] not in known
    )
    return [f"{name} is not a setting of this service{_suggestion(name, known)}" for name in strange]


def _suggestion(name: str, known: Iterable[str]) -> str:
    head, nested, rest = name.partition("__")
    names = [full.removeprefix(PREFIX) for full in known]
    close = difflib.get_close_matches(head.removeprefix(PREFIX), names, n=1, cutoff=0.7)
    return f" (did you mean {PREFIX}{close[0]}{nested}{rest}?)" if close else ""


def _variable(location: tuple[int | str, ...]) -> str:
    return PREFIX + "__".join(str(part) for part in location).upper()
