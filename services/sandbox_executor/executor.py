"""Carries out one command: the right workspace, files, one run, a snapshot, a result.

Invariants: `execute` answers every command; what goes wrong outside the program is `infra_error` with its
boundary, never a verdict; time in queues is measured and never charged to the program; a sandbox that could
not be made is tried once more, a program is never run twice.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from sandpiper.clock import Clock
from sandpiper.store.errors import CorruptObject, MissingObject, StoreError
from sandpiper.store.objects import ObjectStore
from sandpiper.telemetry import metrics, tracing
from sandpiper.v1 import sandbox_pb2 as pb
from sandpiper.v1.common_pb2 import Blob
from services.sandbox_executor import limits, results
from services.sandbox_executor.archives import Archives
from services.sandbox_executor.backend.protocol import (
    CreateFailed,
    Limits,
    Refused,
    RunEvidence,
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


@dataclass
class _Ready:
    """A workspace as the command wants it, and what came up on the way."""

    sandbox: Sandbox
    full: bool = False


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
        metrics.SANDBOX_EXECUTIONS.labels(
            pb.Outcome.Name(result.outcome).removeprefix("OUTCOME_").lower()
        ).inc()
        return result

    async def _execute(self, command: pb.SandboxCommand, queued_at: float) -> pb.SandboxResult:
        bounds = limits.check(command, self._ceilings)
        self.load.queued += 1
        waiting = True
        try:
            async with self._leases.hold(command.sandbox_id) as lease, self._slots:
                self.load.queued -= 1
                waiting = False
                self.load.running += 1
                metrics.EXECUTOR_SLOTS.labels("used").set(self.load.running)
                try:
                    return await self._in_slot(
                        command, bounds, lease, max(0.0, self._clock.time() - queued_at)
                    )
                finally:
                    self.load.running -= 1
                    metrics.EXECUTOR_SLOTS.labels("used").set(self.load.running)
        finally:
            self.load.queued -= waiting

    async def _in_slot(
        self, command: pb.SandboxCommand, bounds: Limits, lease: Lease, queued_s: float
    ) -> pb.SandboxResult:
        began = self._clock.monotonic()
        with tracing.span("sandbox.prepare", sandbox_id=command.sandbox_id):
            ready = await self._prepare(command, bounds, lease)
        setup_s = self._clock.monotonic() - began
        if ready.full:
            result = results.did_not_fit()
        elif command.argv:
            result = await self._run(command, bounds, ready.sandbox)
        else:
            result = pb.SandboxResult(outcome=pb.OUTCOME_OK)
        result.usage.queued_s, result.usage.setup_s = queued_s, setup_s
        await self._keep(command, bounds, lease, ready, result)
        if command.destroy:
            self._leases.discard(lease)
        return result

    async def _prepare(self, command: pb.SandboxCommand, bounds: Limits, lease: Lease) -> _Ready:
        most = bounds.disk_bytes + ARCHIVE_SLACK
        archive = b""
        if command.HasField("files_archive"):
            archive = await self._archives.fetch(command.files_archive, most)
        try:
            return await self._fill(command, bounds, lease, archive)
        except (CreateFailed, SandboxLost) as error:
            log.warning("sandbox.retry", sandbox_id=command.sandbox_id, error=str(error))
            self._leases.discard(lease)
            return await self._fill(command, bounds, lease, archive)

    async def _fill(self, command: pb.SandboxCommand, bounds: Limits, lease: Lease, archive: bytes) -> _Ready:
        sandbox = await self._workspace(command, bounds, lease)
        if not archive and not command.files:
            return _Ready(sandbox)
        lease.state = None
        try:
            if archive:
                await sandbox.restore(archive)
            if command.files:
                await sandbox.write(limits.files_of(command))
        except Refused as refused:
            if refused.reason != "no_space":
                raise
            return _Ready(sandbox, full=True)
        return _Ready(sandbox)

    async def _workspace(self, command: pb.SandboxCommand, bounds: Limits, lease: Lease) -> Sandbox:
        """The live sandbox where it equals the wanted base, else a new one made from the base."""
        wanted = command.base.sha256 if command.HasField("base") and command.base.uri else EMPTY
        if not command.keep and lease.sandbox is not None and lease.matches(wanted, bounds.disk_bytes):
            return lease.sandbox
        tar = await self._archives.fetch(command.base, bounds.disk_bytes + ARCHIVE_SLACK) if wanted else b""
        sandbox = await self._leases.create(lease, bounds.disk_bytes)
        if tar:
            lease.state = None
            await sandbox.restore(tar, list(command.keep))
            lease.state = None if command.keep else wanted
        return sandbox

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
            evidence: RunEvidence = await sandbox.run(spec)
            outcome = decide(evidence, bounds)
            span.set_attribute("outcome", pb.Outcome.Name(outcome))
        metrics.SANDBOX_RUN_SECONDS.observe(evidence.wall_s)
        return results.of_run(evidence, outcome)

    async def _keep(
        self,
        command: pb.SandboxCommand,
        bounds: Limits,
        lease: Lease,
        ready: _Ready,
        result: pb.SandboxResult,
    ) -> None:
        """Snapshot and log to the object store, side by side."""
        if command.argv:
            lease.state = None
        snapshot, log_blob = await asyncio.gather(
            self._snapshot(command, bounds, lease, ready, result), self._log(command, result)
        )
        if snapshot is not None:
            result.snapshot.CopyFrom(snapshot)
        if log_blob is not None:
            result.log.CopyFrom(log_blob)

    async def _snapshot(
        self,
        command: pb.SandboxCommand,
        bounds: Limits,
        lease: Lease,
        ready: _Ready,
        result: pb.SandboxResult,
    ) -> Blob | None:
        if not command.snapshot or ready.full:
            return None
        try:
            tar = await ready.sandbox.snapshot(bounds.disk_bytes + ARCHIVE_SLACK, bounds.max_files)
        except Refused as refused:
            if refused.reason != "too_big":
                raise
            result.outcome = pb.OUTCOME_DISK_LIMIT
            result.stderr += f"\n[sandpiper: no snapshot: {refused.detail}]\n".encode()
            return None
        blob = await self._archives.store(tar)
        lease.state = blob.sha256
        metrics.SNAPSHOT_BYTES.observe(blob.bytes)
        return blob

    async def _log(self, command: pb.SandboxCommand, result: pb.SandboxResult) -> Blob | None:
        if not command.ref.episode_id or not (result.stdout or result.stderr):
            return None
        return await self._objects.put(f"logs/{command.command_id}", results.log_of(result))
