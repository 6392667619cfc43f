"""Settings of the api service: those of every service, and `SANDPIPER_HTTP__<FIELD>`."""

from __future__ import annotations

from pydantic import model_validator

from sandpiper.service import ServiceSettings
from services.api.settings import HttpSettings


class ApiSettings(ServiceSettings):
    """Settings of the api service."""

    http: HttpSettings = HttpSettings()

    @model_validator(mode="after")
    def _keys_fit_the_address(self) -> ApiSettings:
        self.http.key_ring()
        return self
