"""Settings of the HTTP side. Environment: `SANDPIPER_HTTP__<FIELD>`."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from services.api.keys import KeyRing, is_loopback, read_keys_file


class UploadSettings(BaseModel):
    """Bounds of one task-set upload."""

    model_config = ConfigDict(extra="forbid")

    max_bytes: int = Field(64 * 1024 * 1024, ge=1)
    """As sent, compressed or not."""
    max_expanded_bytes: int = Field(256 * 1024 * 1024, ge=1)
    max_file_bytes: int = Field(8 * 1024 * 1024, ge=1)
    """Of one file within an archive."""
    max_entries: int = Field(100_000, ge=1)
    max_tasks: int = Field(20_000, ge=1)
    idle_s: float = Field(30.0, gt=0)
    """Longest silence of a client within its upload."""
    total_s: float = Field(600.0, gt=0)
    """Longest time for one upload."""
    concurrent: int = Field(2, ge=1)
    """Uploads taken in at once; others wait."""


class HttpSettings(BaseModel):
    """The HTTP side."""

    model_config = ConfigDict(extra="forbid")

    host: str = "127.0.0.1"
    """Without API keys only a loopback address is accepted."""
    port: int = Field(8080, ge=0, le=65535)
    keys: dict[str, str] = Field(default_factory=dict)
    """Caller's name -> SHA-256 (hex) of its key; see `sandpiper api-key create`."""
    keys_file: Path | None = None
    """Lines of `<name> <sha256>`, besides `keys`."""
    hosts: tuple[str, ...] = ()
    """Without keys: host names, besides loopback ones, under which browsers may call (a proxy's)."""
    uploads: UploadSettings = UploadSettings()
    max_document_bytes: int = Field(1024 * 1024, ge=1)
    """Of a run document."""
    publish_s: float = Field(10.0, gt=0)
    """How long a POST tries to reach the broker before it answers 503."""
    materialise_s: float = Field(5.0, ge=0)
    """How long a POST waits to see its effect before it answers 202."""
    idempotency_ttl_s: float = Field(24 * 3600.0, gt=0)
    """How long the first answer of an `Idempotency-Key` is kept."""
    idempotency_wait_s: float = Field(10.0, gt=0)
    """How long a duplicate waits for a request in progress before it gets 409."""
    event_clients: int = Field(256, ge=1)
    """Event streams at once."""
    event_queue: int = Field(512, ge=1)
    """Events waiting for one slow client; beyond it the oldest are dropped and the client is told."""
    event_history: int = Field(4096, ge=0)
    """Events kept for clients that come back with `Last-Event-ID`."""
    heartbeat_s: float = Field(15.0, gt=0)
    """Between comments on an idle event stream."""
    poll_s: float = Field(1.0, gt=0)
    """How often watched runs are read for changes of step and state."""
    downloads: int = Field(4, ge=1)
    """Files fetched from the object store at once."""

    def key_ring(self) -> KeyRing:
        """All configured keys. Raises ValueError when there are none and `host` is not loopback."""
        digests = dict(self.keys)
        if self.keys_file is not None:
            digests |= read_keys_file(self.keys_file)
        if not digests and not is_loopback(self.host):
            raise ValueError(
                f"refusing to serve {self.host} without API keys: set SANDPIPER_HTTP__KEYS_FILE "
                "(see `sandpiper api-key create`) or bind to 127.0.0.1"
            )
        return KeyRing(digests)
