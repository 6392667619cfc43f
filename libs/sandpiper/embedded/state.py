"""What a data folder knows: secrets that last, the state of the running stack, the lock.

Invariants:
* one supervisor per data folder: it holds a file lock that the kernel drops with it;
* `stack.json` exists while a stack runs, or was killed with its guardian; 0600, replaced in one step.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from sandpiper.embedded import reaper
from sandpiper.embedded.errors import StackError
from sandpiper.store.settings import ObjectSettings


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore")


class ProcessState(_Model):
    """One supervised process as `status` shows it."""

    name: str
    service: str
    pid: int | None = None
    started_ticks: int | None = None
    state: str = "waiting"
    restarts: int = 0
    url: str = ""
    """Where it listens (health or client address)."""
    log: Path


class StackState(_Model):
    """A running stack: enough for a client to use it and for `down` to end it."""

    token: str
    """Random; marks every process of the stack."""
    supervisor_pid: int
    supervisor_ticks: int | None
    temp_dir: Path
    ready: bool = False
    """True once every process has been ready at the same start."""
    error: str = ""
    """Why the start failed, when it did."""
    api_url: str = ""
    bootstrap: str
    """Broker, `host:port`."""
    database_url: str
    """`postgresql+asyncpg://…`, with password."""
    objects_endpoint: str
    objects_access_key: str
    objects_secret_key: str
    objects_bucket: str = "sandpiper"
    processes: list[ProcessState] = []

    @property
    def supervisor_alive(self) -> bool:
        """True while the very process that wrote this runs."""
        ticks = reaper.start_ticks(self.supervisor_pid)
        return ticks is not None and ticks == self.supervisor_ticks

    @property
    def objects(self) -> ObjectSettings:
        """Settings of an object store client of this stack."""
        return ObjectSettings.model_validate(
            {
                "endpoint": self.objects_endpoint,
                "access_key": self.objects_access_key,
                "secret_key": self.objects_secret_key,
                "bucket": self.objects_bucket,
            }
        )

    def client_env(self) -> dict[str, str]:
        """Settings of a process that uses this stack."""
        return {
            "SANDPIPER_BUS__BOOTSTRAP": self.bootstrap,
            "SANDPIPER_BUS__BROKER": "tansu",
            "SANDPIPER_OBJECTS__ENDPOINT": self.objects_endpoint,
            "SANDPIPER_OBJECTS__ACCESS_KEY": self.objects_access_key,
            "SANDPIPER_OBJECTS__SECRET_KEY": self.objects_secret_key,
            "SANDPIPER_OBJECTS__BUCKET": self.objects_bucket,
            "SANDPIPER_DATABASE_URL": self.database_url,
        }


class Secrets(_Model):
    """Made once per data folder: the database remembers its passwords."""

    postgres_admin: str
    postgres_password: str
    access_key: str
    secret_key: str


class DataFolder:
    """Paths of a data folder and its small files."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()
        self.state_file = self.path / "stack.json"
        self.logs = self.path / "logs"
        self._lock_handle: int | None = None

    def lock(self) -> None:
        """Become the one supervisor of this folder (made if absent); StackError when there is another."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o711)
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            raise StackError(
                f"a stack already runs with data folder {self.path}; see `sandpiper status`, "
                "end it with `sandpiper down`"
            ) from error
        self._lock_handle = handle

    def unlock(self) -> None:
        if self._lock_handle is not None:
            os.close(self._lock_handle)
            self._lock_handle = None

    def secrets(self) -> Secrets:
        """The folder's secrets, made on first use."""
        file = self.path / "secrets.json"
        if not file.exists():
            made = Secrets(
                postgres_admin=secrets.token_urlsafe(24),
                postgres_password=secrets.token_urlsafe(24),
                access_key=secrets.token_hex(10),
                secret_key=secrets.token_urlsafe(30),
            )
            _write(file, made.model_dump_json(indent=1))
        return Secrets.model_validate_json(file.read_text())

    def read_state(self) -> StackState | None:
        """The state that a supervisor left, None when no stack runs here."""
        try:
            return StackState.model_validate(json.loads(self.state_file.read_text()))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StackError(f"{self.state_file} is damaged: {error}") from error

    def write_state(self, state: StackState) -> None:
        _write(self.state_file, state.model_dump_json(indent=1))

    def forget_state(self) -> None:
        self.state_file.unlink(missing_ok=True)


def _write(file: Path, text: str) -> None:
    new = file.with_name(f".{file.name}.new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as out:
        out.write(text)
    os.replace(new, file)
