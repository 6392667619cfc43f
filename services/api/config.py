"""Settings of the api service: those of every service, and `SANDPIPER_HTTP__<FIELD>`."""

from __future__ import annotations

from sandpiper.service import ServiceSettings

from services.api.settings import HttpSettings


class ApiSettings(ServiceSettings):
    """Settings of the api service."""

    http: HttpSettings = HttpSettings()
