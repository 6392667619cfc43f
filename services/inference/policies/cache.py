"""Policies on local disk, bounded: the folders that the engine reads.

Invariants
* A folder is complete and verified against its manifest before anyone is told of it.
* At most `keep` folders stay, besides those in use; the least recently used goes first.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import structlog

from sandpiper.store import policies
from sandpiper.store.errors import CorruptObject, MissingObject, StoreError, StoreRefused
from sandpiper.store.objects import ObjectStore
from sandpiper.store.policies import PolicyManifest
from services.inference.failures import InferenceError, PolicyRefused, PolicyUnavailable
from services.inference.policies.registry import Published

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Local:
    """A policy on disk."""

    published: Published
    manifest: PolicyManifest
    folder: Path


class PolicyCache:
    """Downloads policies once. Calls may overlap; the same policy is fetched by one of them."""

    def __init__(self, objects: ObjectStore, root: Path, keep: int) -> None:
        self._objects = objects
        self._root = root
        self._keep = keep
        self._local: OrderedDict[Published, Local] = OrderedDict()
        self._fetching: dict[Published, asyncio.Task[Local]] = {}

    async def start(self) -> None:
        """Forget what an earlier process left behind."""
        await asyncio.to_thread(shutil.rmtree, self._root, ignore_errors=True)

    def has(self, published: Published) -> bool:
        """True when `get` answers at once."""
        return published in self._local

    async def get(self, published: Published, in_use: Collection[Published] = ()) -> Local:
        """The policy's folder, fetched if need be. Raises PolicyUnavailable, PolicyRefused."""
        if published not in self._local:
            await self._fetch_once(published)
            await self._evict({published, *in_use})
        self._local.move_to_end(published)
        return self._local[published]

    async def close(self) -> None:
        """Stop downloads."""
        tasks = list(self._fetching.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fetch_once(self, published: Published) -> None:
        task = self._fetching.get(published)
        if task is None:
            task = asyncio.create_task(self._fetch(published), name=f"fetch {published}")
            self._fetching[published] = task
            task.add_done_callback(lambda _: self._fetching.pop(published, None))
        self._local[published] = await asyncio.shield(task)

    async def _fetch(self, published: Published) -> Local:
        folder = self._root / _folder_name(published)
        try:
            manifest = await policies.fetch(self._objects, published.blob(), folder)
        except (StoreError, ValueError) as error:
            raise _named(published, error) from error
        if (manifest.run_id, manifest.version) != (published.run_id, published.version):
            raise PolicyRefused(
                "corrupt", f"{published}: manifest is of {manifest.run_id}/{manifest.version}"
            )
        return Local(published, manifest, folder)

    async def _evict(self, in_use: Collection[Published]) -> None:
        old = [published for published in self._local if published not in in_use]
        for published in old[: max(0, len(self._local) - self._keep)]:
            local = self._local.pop(published)
            await asyncio.to_thread(shutil.rmtree, local.folder, ignore_errors=True)
            log.info("policy_evicted", policy=str(published))


def _folder_name(published: Published) -> str:
    digest = hashlib.sha256(f"{published.uri} {published.sha256}".encode()).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', published.run_id)}-{published.version}-{digest}"


def _named(published: Published, error: Exception) -> InferenceError:
    if isinstance(error, CorruptObject):
        return PolicyRefused("corrupt", f"{published}: {error}")
    if isinstance(error, MissingObject | StoreRefused | ValueError):
        return PolicyUnavailable("missing", f"{published}: {error}")
    return PolicyUnavailable("unavailable", f"{published}: {error}")
