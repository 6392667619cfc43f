"""Policies leave through here: folder to object store, manifest last, then the event."""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

from sandpiper.clock import Clock
from sandpiper.store import policies
from sandpiper.store.errors import StoreError
from sandpiper.store.objects import ObjectStore
from sandpiper.store.policies import PolicyManifest, Probe
from sandpiper.telemetry import metrics
from services.learner.events import Events
from services.learner.policy.models import stored_dtype
from services.learner.state.blobs import blob_of

log = structlog.get_logger(__name__)


class Publisher:
    """Publishes versions of runs. Raises StoreUnavailable, BusUnavailable."""

    def __init__(self, objects: ObjectStore, events: Events, clock: Clock) -> None:
        self._objects = objects
        self._events = events
        self._clock = clock

    async def exists(self, run_id: str, version: int) -> bool:
        """True when the version is published completely."""
        return await self._objects.exists(policies.manifest_key(run_id, version))

    async def store(self, run_id: str, version: int, base: str, folder: Path, probe: Probe) -> None:
        """Store a version; its step has the same number."""
        dtype = await asyncio.to_thread(stored_dtype, folder)
        manifest = PolicyManifest(
            run_id=run_id,
            version=version,
            step=version,
            base=base,
            dtype=str(dtype).removeprefix("torch."),
            probe=probe,
            created_at=self._clock.time(),
        )
        await policies.publish(self._objects, manifest, folder)

    async def announce(self, run_id: str, version: int) -> None:
        """Say that a stored version can be served. May be repeated."""
        key = policies.manifest_key(run_id, version)
        data = await self._objects.get(self._objects.uri(key))
        manifest = PolicyManifest.model_validate_json(data)
        blob = blob_of(self._objects, key, data)
        await self._events.policy(run_id, version, manifest.step, blob, manifest.weights_sha256)
        metrics.POLICY_VERSION.labels(role="learner").set(version)

    async def fetch(self, run_id: str, version: int, folder: Path) -> PolicyManifest:
        """Bring a version into `folder`, verified."""
        return await policies.fetch(
            self._objects, self._objects.uri(policies.manifest_key(run_id, version)), folder
        )

    async def unpin(self, user: str) -> None:
        """A run that is over needs no other run's version any more. Raises StoreUnavailable."""
        await policies.unpin(self._objects, user)

    async def prune(self, run_id: str, keep: int) -> None:
        """Delete old versions; a store that is away is left for the next time."""
        try:
            await policies.prune(self._objects, run_id, keep)
        except StoreError as error:
            log.warning("policy_prune_failed", run_id=run_id, error=str(error))
