"""Carries out one command: the right workspace, files, one run, a snapshot, a result.

Invariants: `execute` answers every command; what goes wrong outside the program is `infra_error` with its
boundary, never a verdict; time in queues is measured and never charged to the program; a sandbox that could
not be made is tried once more, a program is never run twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog

from sandpiper.clock import Clock
from sandpiper.execution import outcome_name
from sandpiper.store.errors import CorruptObject, MissingObject, StoreError
from sandpiper.store.objects import ObjectStore
from sandpiper.telemetry import metrics, tracing
from sandpiper.v1 import sandbox_pb2 as pb
from services.sandbox_executor import limits, results
from services.sandbox_executor.archives import Archives
from services.sandbox_executor.backend.protocol import (
    CreateFailed,
    Limits,
    Refused,
    RunSpec,
    Sandbox,
    SandboxError,
    SandboxLost,
)
from services.sandbox_executor.config import Ceilings
from services.sandbox_executor.leases import EMPTY, Lease, Leases
from services.sandbox_executor.outcome import decide

log = structlog.get_logger(__name__)

ARCHIVE_SLACK = 4 << 20
"""Room for headers above the bytes of a full workspace."""


@dataclass
class Load:
    """How busy the executor is."""

    capacity: int
    queued: int = 0
    running: int = 0


@dataclass(frozen=True)
class _Inputs:
    """What was fetched for a command. `base` None: the live workspace goes on."""

    base: bytes | None
    archive: bytes


@dataclass
class _Done:
    """What happened in the slot; `tar` is the snapshot to store, if any."""

    result: pb.SandboxResult
    tar: bytes | None = None


class Executor:
    """Runs commands in leased sandboxes, `slots` at once."""

    def __init__(
        self,
        leases: Leases,
        archives: Archives,
        objects: ObjectStore,
        clock: Clock,
        ceilings: Ceilings,
        slots: int,
    ) -> None:
        self.load = Load(slots)
        self._leases = leases
        self._archives = archives
        self._objects = objects
        self._clock = clock
        self._ceilings = ceilings
        self._slots = asyncio.Semaphore(slots)
        metrics.EXECUTOR_SLOTS.labels("total").set(slots)

    async def execute(self, command: pb.SandboxCommand, queued_at: float) -> pb.SandboxResult:
        """The result of `command`, which entered the queue at `queued_at` (unix seconds)."""
        try:
            result = await self._execute(command, queued_at)
        except limits.CommandRefused as refused:
            result = results.failed("sandbox", "bad_command", str(refused))
        except SandboxError as error:
            result = results.failed("sandbox", error.reason, error.detail)
        except (CorruptObject, MissingObject) as error:
            result = results.failed("store", type(error).__name__, str(error))
        except StoreError as error:
            result = results.failed("store", "unavailable", str(error))
        except Exception as error:
            log.exception("executor.bug", command_id=command.command_id)
            result = results.failed("sandbox", "internal", repr(error))
        metrics.SANDBOX_EXECUTIONS.labels(outcome_name(result.outcome)).inc()
        return result

    async def _execute(self, command: pb.SandboxCommand, queued_at: float) -> pb.SandboxResult:
        bounds = limits.check(command, self._ceilings)
        self.load.queued += 1
        waiting = [True]
        try:
            async with self._leases.hold(command.sandbox_id) as lease:
                inputs = await self._fetch(command, bounds, lease)
                async with self._slot(waiting):
                    queued_s = max(0.0, self._clock.time() - queued_at)
                    done = await self._work(command, bounds, lease, inputs)
                done.result.usage.queued_s = queued_s
                await self._keep(command, lease, done)
                if command.destroy:
                    self._leases.discard(lease)
        finally:
            self.load.queued -= len(waiting)
        return done.result

    @asynccontextmanager
    async def _slot(self, waiting: list[bool]) -> AsyncIterator[None]:
        """One of the slots; the command is no longer counted as `waiting` then."""
        async with self._slots:
            self.load.queued -= len(waiting)
            waiting.clear()
            self.load.running += 1
            metrics.EXECUTOR_SLOTS.labels("used").set(self.load.running)
            try:
                yield
            finally:
                self.load.running -= 1
                metrics.EXECUTOR_SLOTS.labels("used").set(self.load.running)

    async def _fetch(self, command: pb.SandboxCommand, bounds: Limits, lease: Lease) -> _Inputs:
        """The archives of the command; its base only where the live workspace is not that already."""
        most = bounds.disk_bytes + ARCHIVE_SLACK
        archive = b""
        if command.HasField("files_archive"):
            archive = await self._archives.fetch(command.files_archive, most)
        wanted = _base_of(command)
        if not command.keep and lease.matches(wanted, bounds.disk_bytes):
            return _Inputs(None, archive)
        return _Inputs(await self._archives.fetch(command.base, most) if wanted else b"", archive)

    async def _work(self, command: pb.SandboxCommand, bounds: Limits, lease: Lease, inputs: _Inputs) -> _Done:
        began = self._clock.monotonic()
        with tracing.span("sandbox.prepare", sandbox_id=command.sandbox_id):
            sandbox, fits = await self._prepare(command, bounds, lease, inputs)
        setup_s = self._clock.monotonic() - began
        if not fits:
            return _Done(results.did_not_fit())
        done = _Done(pb.SandboxResult(outcome=pb.OUTCOME_OK))
        if command.argv:
            lease.state = None
            done.result = await self._run(command, bounds, sandbox)
        done.result.usage.setup_s = setup_s
        if command.snapshot:
            done.tar = await _snapshot(sandbox, bounds, done.result)
        return done

    async def _prepare(
        self, command: pb.SandboxCommand, bounds: Limits, lease: Lease, inputs: _Inputs
    ) -> tuple[Sandbox, bool]:
        """The filled workspace, and whether everything fitted. A sandbox that fails is replaced once."""
        try:
            return await self._fill(command, bounds, lease, inputs)
        except (CreateFailed, SandboxLost) as error:
            log.warning("sandbox.retry", sandbox_id=command.sandbox_id, error=str(error))
        self._leases.discard(lease)
        if inputs.base is None:
            inputs = await self._fetch(command, bounds, lease)
        return await self._fill(command, bounds, lease, inputs)

    async def _fill(
        self, command: pb.SandboxCommand, bounds: Limits, lease: Lease, inputs: _Inputs
    ) -> tuple[Sandbox, bool]:
        if lease.sandbox is None or inputs.base is not None:
            sandbox = await self._leases.create(lease, bounds.disk_bytes)
        else:
            sandbox = lease.sandbox
        try:
            if inputs.base:
                lease.state = None
                await sandbox.restore(inputs.base, list(command.keep))
                lease.state = None if command.keep else _base_of(command)
            if inputs.archive or command.files:
                lease.state = None
                await self._add(command, sandbox, inputs.archive)
        except Refused as refused:
            if refused.reason != "no_space":
                raise
            return sandbox, False
        return sandbox, True

    async def _add(self, command: pb.SandboxCommand, sandbox: Sandbox, archive: bytes) -> None:
        if archive:
            await sandbox.restore(archive)
        if command.files:
            await sandbox.write(limits.files_of(command))

    async def _run(self, command: pb.SandboxCommand, bounds: Limits, sandbox: Sandbox) -> pb.SandboxResult:
        spec = RunSpec(
            argv=list(command.argv),
            limits=bounds,
            env=dict(command.env),
            stdin=command.stdin.encode(),
            private_channel=command.private_channel,
            private_input=command.private_input,
        )
        with tracing.span("sandbox.run", sandbox_id=command.sandbox_id, program=command.argv[0]) as span:
            evidence = await sandbox.run(spec)
            outcome = decide(evidence, bounds)
            span.set_attribute("outcome", outcome_name(outcome))
        metrics.SANDBOX_RUN_SECONDS.observe(evidence.wall_s)
        return results.of_run(evidence, outcome)

    async def _keep(self, command: pb.SandboxCommand, lease: Lease, done: _Done) -> None:
        """Snapshot and log to the object store, side by side."""
        kept = await asyncio.gather(
            self._store(lease, done), self._log(command, done.result), return_exceptions=True
        )
        for failure in kept:
            if failure is not None:
                raise failure

    async def _store(self, lease: Lease, done: _Done) -> None:
        if done.tar is not None:
            blob = await self._archives.store(done.tar)
            done.result.snapshot.CopyFrom(blob)
            lease.state = blob.sha256
            metrics.SNAPSHOT_BYTES.observe(blob.bytes)

    async def _log(self, command: pb.SandboxCommand, result: pb.SandboxResult) -> None:
        if command.ref.episode_id and (result.stdout or result.stderr):
            blob = await self._objects.put(f"logs/{command.command_id}", results.log_of(result))
            result.log.CopyFrom(blob)


def _base_of(command: pb.SandboxCommand) -> str:
    return command.base.sha256 if command.base.uri else EMPTY


async def _snapshot(sandbox: Sandbox, bounds: Limits, result: pb.SandboxResult) -> bytes | None:
    """The workspace; one that cannot be kept is a disk limit, whatever the program's end was."""
    try:
        return await sandbox.snapshot(bounds.disk_bytes + ARCHIVE_SLACK, bounds.max_files)
    except Refused as refused:
        if refused.reason != "too_big":
            raise
        result.outcome = pb.OUTCOME_DISK_LIMIT
        result.stderr += f"\n[sandpiper: no snapshot: {refused.detail}]\n".encode()
        return None
