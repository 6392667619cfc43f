"""Settings of the reward grader. Environment prefix `SANDPIPER_`, nested with `__`."""

from __future__ import annotations

from pydantic import Field, SecretStr

from sandpiper.settings import ServiceSettings

NONCE_PURPOSE = "reward-grader nonce"


class GraderSettings(ServiceSettings):
    """Shared settings plus these."""

    concurrency: int = Field(32, ge=1)
    """Requests, and results, handled at once."""
    executor_stale_s: float = Field(5.0, gt=0)
    """An executor that has sent no heartbeat for so long is not given work."""
    nonce_secret: SecretStr | None = None
    """Key of the nonces; every replica needs the same. Unset: derived from the object store's secret key."""
    task_cache: int = Field(512, ge=0)
    """Parsed tasks kept in memory."""

    def nonce_key(self) -> bytes:
        """The key of the nonces, as bytes."""
        secret = self.nonce_secret or self.objects.secret_key
        return f"{NONCE_PURPOSE}:{secret.get_secret_value()}".encode()
