"""Settings of the object store. Apart from the client, so that reading them costs no import of it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, SecretStr


class ObjectSettings(BaseModel):
    """Where objects lie and how long to wait for them. Environment: `SANDPIPER_OBJECTS__<FIELD>`."""

    model_config = ConfigDict(extra="forbid")

    endpoint: str = "127.0.0.1:9000"
    """`host:port`, without scheme."""
    access_key: str = ""
    secret_key: SecretStr = SecretStr("")
    bucket: str = Field("sandpiper", pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")
    secure: bool = False
    """HTTPS."""
    region: str = "us-east-1"
    """Set, so that no call has to look it up."""
    connections: int = Field(16, ge=1, le=256)
    """Requests in flight at once; also the number of threads."""
    connect_timeout_s: float = Field(3.0, gt=0)
    read_timeout_s: float = Field(20.0, gt=0)
    """Longest silence of the store within one request."""
    deadline_s: float = Field(30.0, gt=0)
    """Bound of one operation with all its retries; large transfers get `bytes / min_bytes_per_s` on top."""
    start_deadline_s: float = Field(60.0, gt=0)
    """How long `start()` waits for the store to come up."""
    min_bytes_per_s: float = Field(4e6, gt=0)
