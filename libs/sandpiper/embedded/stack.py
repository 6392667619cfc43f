"""The embedded stack: broker, Postgres, S3 and the services on one machine, under one supervisor.

Invariants:
* services start only after broker, topics, schema and bucket are there, and stop before them;
* whatever way it ends, no process, temporary folder or state file is left: `stop()` in order and bounded, the
  guardian after a kill, the next `start()` after a kill of both;
* data (Postgres, objects, secrets, logs) stays in the data folder and is taken up by the next start.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import structlog

from sandpiper.bus.admin import ensure_topics
from sandpiper.bus.settings import BusSettings
from sandpiper.clock import Clock, SystemClock
from sandpiper.embedded import broker, postgres, reaper, s3, services
from sandpiper.embedded.errors import StackError
from sandpiper.embedded.options import SERVICES, StackOptions
from sandpiper.embedded.ports import Ports
from sandpiper.embedded.rotation import rotate_forever
from sandpiper.embedded.state import DataFolder, ProcessState, StackState
from sandpiper.embedded.supervisor import Supervised, Unit
from sandpiper.store.objects import ObjectStore

log = structlog.get_logger()

GUARDIAN_GRACE_S = 4.0


class EmbeddedStack:
    """One stack. `await start()`, use `state`, `await stop()`. Not restartable: make another."""

    def __init__(
        self, options: StackOptions, environ: Mapping[str, str] | None = None, clock: Clock | None = None
    ) -> None:
        self.options = options
        self.folder = DataFolder(options.data_dir)
        self._environ = dict(os.environ if environ is None else environ)
        self._clock = clock or SystemClock()
        self._ports = Ports()
        self._state: StackState | None = None
        self._infra: list[Supervised] = []
        self._services: list[Supervised] = []
        self._urls: dict[str, str] = {}
        self._guardian: subprocess.Popen[bytes] | None = None
        self._rotation: asyncio.Task[None] | None = None

    @property
    def state(self) -> StackState:
        """Addresses, credentials and processes. StackError before `start()`."""
        if self._state is None:
            raise StackError("the stack was not started")
        return self._state

    async def start(self) -> None:
        """Start everything; return when all is ready. On failure all is stopped and StackError raised."""
        self.folder.lock()
        try:
            await self._clear_earlier()
            self._prepare()
            await self._start_infra()
            await self._start_services()
        except BaseException:
            await self.stop(grace_s=1.0)
            raise
        self.state.ready = True
        self._save()

    async def stop(self, grace_s: float | None = None) -> None:
        """Stop services, then infrastructure, each within its grace; leave nothing behind."""
        if self._state is None:
            self.folder.unlock()
            return
        await _stop_all(self._services, grace_s)
        await _stop_all(self._infra, None)
        if self._rotation is not None:
            self._rotation.cancel()
            await asyncio.gather(self._rotation, return_exceptions=True)
        await asyncio.to_thread(reaper.end_marked, self.state.token, 0.0)
        await asyncio.to_thread(shutil.rmtree, self.state.temp_dir, ignore_errors=True)
        await asyncio.to_thread(self._dismiss_guardian)
        self.folder.forget_state()
        self.folder.unlock()

    async def _clear_earlier(self) -> None:
        """End what a killed stack left in this folder. We hold the lock, so it has no supervisor."""
        left = self.folder.read_state()
        if left is None:
            return
        log.warning("clearing up after a stack that was killed", data_dir=str(self.folder.path))
        if not await asyncio.to_thread(reaper.end_marked, left.token, GUARDIAN_GRACE_S):
            raise StackError("processes of an earlier stack in this data folder cannot be ended")
        shutil.rmtree(left.temp_dir, ignore_errors=True)
        self.folder.forget_state()

    def _prepare(self) -> None:
        """Ports, secrets, state file, guardian."""
        options, known = self.options, self.folder.secrets()
        api_port = 0
        if options.replicas.get("api"):
            api_port = self._ports.take(
                options.api_port, "the API", "choose another with --port", options.api_host
            )
            self.options = options = options.model_copy(update={"api_port": api_port})
        take = self._ports.take
        ports = {
            "broker": take(options.broker_port, "the broker", "choose another with --broker-port"),
            "postgres": take(options.postgres_port, "Postgres", "choose another with --postgres-port"),
            "objects": take(options.objects_port, "the object store", "choose another with --objects-port"),
        }
        self._urls = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        token = secrets.token_hex(12)
        self._state = StackState(
            token=token,
            supervisor_pid=os.getpid(),
            supervisor_ticks=reaper.start_ticks(os.getpid()),
            temp_dir=Path(tempfile.mkdtemp(prefix="sandpiper-")),
            api_url=f"http://{options.api_host}:{api_port}" if api_port else "",
            bootstrap=self._urls["broker"],
            database_url=postgres.database_url(ports["postgres"], known),
            objects_endpoint=self._urls["objects"],
            objects_access_key=known.access_key,
            objects_secret_key=known.secret_key,
        )
        self._save()
        self._guardian = self._post_guardian()
        self._rotation = asyncio.create_task(rotate_forever(self.folder.logs, options.log_max_bytes))

    def _post_guardian(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", reaper.__file__),
                *(self.state.token, str(self.state.temp_dir), str(self.folder.state_file)),
                f"--grace={GUARDIAN_GRACE_S}",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _dismiss_guardian(self) -> None:
        if self._guardian is None:
            return
        try:
            self._guardian.communicate(reaper.DONE, timeout=5)
        except (subprocess.TimeoutExpired, OSError):
            self._guardian.kill()
            self._guardian.wait()

    async def _start_infra(self) -> None:
        folder, known, state = self.folder, self.folder.secrets(), self.state
        ports = {name: int(url.rpartition(":")[2]) for name, url in self._urls.items()}
        # As slow as all the rest together: begin early, in a thread.
        migrate = asyncio.create_task(
            asyncio.to_thread(importlib.import_module, "sandpiper.store.db.migrate")
        )
        await asyncio.to_thread(s3.sweep, folder.path / "objects")
        cluster = folder.path / "postgres"
        await postgres.ensure_cluster(cluster, known, state.token, self._log("postgres"))
        self._infra = self._supervise(
            broker.unit(ports["broker"], self._log("broker"), self._ensure_topics),
            postgres.unit(ports["postgres"], cluster, known, self._log("postgres")),
            s3.unit(
                ports["objects"],
                folder.path / "objects",
                known.access_key,
                known.secret_key,
                self._log("objects"),
            ),
        )
        await _start_all(self._infra)
        await asyncio.gather(self._ensure_schema(ports["postgres"], await migrate), self._ensure_bucket())

    async def _start_services(self) -> None:
        units: list[Unit] = []
        for service, name in services.instances(self.options):
            work = self.folder.path / "work" / name
            work.mkdir(parents=True, exist_ok=True, mode=0o700)
            port = self._ports.take(0, f"health of {name}", "")
            self._urls[name] = f"http://127.0.0.1:{port}"
            env = services.environment(
                service, self.options, self._environ, self.state.client_env(), port, work, self.state.temp_dir
            )
            units.append(services.unit(service, name, env, self._log(name), self.options))
        self._services = self._supervise(*units)
        await _start_all(self._services)

    def _supervise(self, *units: Unit) -> list[Supervised]:
        return [Supervised(unit, self.state.token, self._clock, self._save) for unit in units]

    async def _ensure_topics(self) -> None:
        await ensure_topics(BusSettings(bootstrap=self.state.bootstrap, broker="tansu"))

    async def _ensure_schema(self, port: int, migrate: ModuleType) -> None:
        await postgres.ensure_database(port, self.folder.secrets())
        await asyncio.to_thread(migrate.upgrade, self.state.database_url)

    async def _ensure_bucket(self) -> None:
        objects = ObjectStore(self.state.objects)
        try:
            await objects.start()
        finally:
            await objects.close()

    def _log(self, name: str) -> Path:
        return self.folder.logs / f"{name}.log"

    def _save(self) -> None:
        self.state.processes = [self._process_state(process) for process in (*self._infra, *self._services)]
        self.folder.write_state(self.state)

    def _process_state(self, process: Supervised) -> ProcessState:
        child, name = process.child, process.name
        service = next((s for s in SERVICES if name == s or name.startswith(f"{s}-")), name)
        return ProcessState(
            name=name,
            service=service,
            pid=child.pid if child and child.running else None,
            started_ticks=child.started_ticks if child and child.running else None,
            state=process.state,
            restarts=process.restarts,
            url=self._urls.get(name, ""),
            log=process.unit.command.log,
        )


async def _start_all(processes: list[Supervised]) -> None:
    """Start them together; the first that cannot start gives the error."""
    starts = [asyncio.create_task(process.start()) for process in processes]
    try:
        await asyncio.gather(*starts)
    finally:
        for start in starts:
            start.cancel()
        await asyncio.gather(*starts, return_exceptions=True)


async def _stop_all(processes: list[Supervised], grace_s: float | None) -> None:
    await asyncio.gather(*(process.stop(grace_s) for process in reversed(processes)))
