"""The engine and the one policy that is resident in it.

Invariants
* A policy becomes resident only after the probe; until then nothing is generated with its weights.
* After a load that failed, the policy that was resident before is resident again, or none is.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import structlog

from sandpiper.telemetry import metrics
from services.inference.engines.base import Engine
from services.inference.failures import EngineUnavailable, InferenceError
from services.inference.policies.cache import Local
from services.inference.policies.probe import verify
from services.inference.prompts.tokenizer import ChatTokenizer, Tokenizer

log = structlog.get_logger(__name__)
VOLATILE = ("transformers_version", "_name_or_path", "dtype", "torch_dtype", "use_cache")


class EngineFactory(Protocol):
    """Makes engines (`engines.choose.Engines`)."""

    async def candidates(self, folder: Path) -> list[str]:
        """Names of the engines to try for the weights in `folder`, best first."""
        ...

    async def make(self, name: str) -> Engine:
        """An engine that is not started yet."""
        ...


@dataclass(frozen=True)
class Resident:
    """What the engine serves."""

    local: Local
    tokenizer: Tokenizer

    @property
    def version(self) -> int:
        """Its version within the run that published it."""
        return self.local.published.version


class Loader:
    """Not concurrent: one task calls `load`."""

    def __init__(self, engines: EngineFactory) -> None:
        self._engines = engines
        self._broken: set[str] = set()
        self._engine: Engine | None = None
        self._tokenizers: dict[str, Tokenizer] = {}
        self.resident: Resident | None = None

    @property
    def engine(self) -> Engine:
        """The engine of the resident policy. Raises EngineUnavailable when there is none."""
        if self._engine is None:
            raise EngineUnavailable("no engine is running")
        return self._engine

    @property
    def alive(self) -> bool:
        """True while the resident policy can be served."""
        return self.resident is not None and self._engine is not None and self._engine.alive

    async def load(self, local: Local) -> None:
        """Make a policy resident. Raises InferenceError; see the invariants for what is resident then."""
        began = time.monotonic()
        tokenizer = await self._tokenizer(local)
        if self.alive and await asyncio.to_thread(self._same_model, local):
            await self._swap(Resident(local, tokenizer))
        else:
            await self._restart(Resident(local, tokenizer))
        seconds = time.monotonic() - began
        metrics.POLICY_LOAD_SECONDS.observe(seconds)
        metrics.POLICY_VERSION.labels("inference").set(local.published.version)
        log.info(
            "policy_loaded", policy=str(local.published), engine=self.engine.name, seconds=round(seconds, 3)
        )

    async def close(self) -> None:
        """Stop the engine."""
        self.resident = None
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.stop()

    async def _swap(self, new: Resident) -> None:
        """New weights for the same model, between two steps of what is in flight."""
        async with self.engine.hold():
            try:
                await self.engine.load_policy(new.local.folder, new.version)
                await self._verify(new)
            except InferenceError:
                await self._restore()
                raise
            self.resident = new

    async def _restore(self) -> None:
        old = self.resident
        try:
            if old is None or not self.engine.alive:
                raise EngineUnavailable("the engine died while it loaded weights")
            await self.engine.load_policy(old.local.folder, old.version)
            await self._verify(old)
        except InferenceError as error:
            log.error("policy_not_restored", error=str(error))
            await self.close()

    async def _restart(self, new: Resident) -> None:
        """Start an engine on the new weights; the next candidate where one does not start at all."""
        await self.close()
        names = await self._engines.candidates(new.local.folder)
        names = [name for name in names if name not in self._broken] or names[-1:]
        for name in names:
            try:
                await self._start(name, new)
            except EngineUnavailable as error:
                await self.close()
                log.error("engine_start_failed", engine=name, error=str(error))
                if name == names[-1]:
                    raise
                self._broken.add(name)
            except BaseException:
                await self.close()
                raise
            else:
                self.resident = new
                return

    async def _start(self, name: str, new: Resident) -> None:
        self._engine = await self._engines.make(name)
        await self._engine.start(new.local.folder, new.version)
        await self._verify(new)

    async def _verify(self, new: Resident) -> None:
        what = str(new.local.published)
        if not self.engine.verifiable:
            log.warning("policy_not_verified", policy=what, engine=self.engine.name)
            return
        error = await verify(self.engine, new.local.manifest.probe, what)
        log.info("policy_verified", policy=what, mean_error=round(error, 5))

    def _same_model(self, local: Local) -> bool:
        assert self.resident is not None
        return _architecture(local.folder) == _architecture(self.resident.local.folder)

    async def _tokenizer(self, local: Local) -> Tokenizer:
        files = {n: f.sha256 for n, f in local.manifest.files.items() if not n.endswith(".safetensors")}
        key = json.dumps(files, sort_keys=True)
        if key not in self._tokenizers:
            self._tokenizers = {key: await asyncio.to_thread(ChatTokenizer, local.folder)}
        return self._tokenizers[key]


def _architecture(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        config = json.loads((folder / "config.json").read_text())
    return {name: value for name, value in config.items() if name not in VOLATILE}
