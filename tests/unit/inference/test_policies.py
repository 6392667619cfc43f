"""Registry, local cache, probe and loader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sandpiper.store.policies import Probe
from sandpiper.v1.common_pb2 import Blob, PolicyRef
from services.inference.engines.base import Engine, Sampling
from services.inference.engines.torch_engine import TorchEngine
from services.inference.failures import EngineUnavailable, PolicyRefused, PolicyUnavailable
from services.inference.policies.cache import Local, PolicyCache
from services.inference.policies.loader import Loader
from services.inference.policies.probe import verify
from services.inference.policies.registry import Published, Registry
from tests.unit.inference.memory_objects import PROBE_IDS, MemoryObjects, publish, true_probe
from tests.unit.inference.tiny_model import Counting, make_engine, make_tiny


def some(version: int, run: str = "run-a", sha: str = "x") -> Published:
    return Published.of(run, version, Blob(uri=f"s3://b/{run}/{version}", sha256=sha))


def test_registry_goes_forward_only() -> None:
    registry = Registry()
    assert registry.announce(some(2))
    assert not registry.announce(some(1))
    assert not registry.announce(some(2))
    assert registry.announce(some(2, sha="again after a resume"))
    assert registry.announce(some(5))
    assert registry.announce(some(1, run="run-b"))
    assert registry.newest("run-a") == some(5)
    assert registry.newest("run-c") is None


def test_registry_learns_from_requests_what_it_does_not_know() -> None:
    registry = Registry()
    three = PolicyRef(run_id="run-a", version=3, manifest=some(3).blob())
    registry.learn_from(PolicyRef(run_id="run-a", version=9, pinned=True, manifest=some(9).blob()))
    assert registry.newest("run-a") is None
    registry.learn_from(three)
    assert registry.newest("run-a") == some(3)
    registry.announce(some(3, sha="newer"))
    registry.learn_from(three)
    assert registry.newest("run-a") == some(3, sha="newer")


class Factory:
    """Torch engines, or whatever `make` is replaced with."""

    def __init__(self, names: list[str] | None = None) -> None:
        self.names = names or ["torch"]
        self.made: list[str] = []

    async def candidates(self, folder: Path) -> list[str]:
        return self.names

    async def make(self, name: str) -> Engine:
        self.made.append(name)
        return make_engine()


@pytest.fixture
def store() -> MemoryObjects:
    return MemoryObjects()


@pytest.fixture
def cache(store: MemoryObjects, tmp_path: Path) -> PolicyCache:
    return PolicyCache(store.typed(), tmp_path / "cache", keep=2)


@pytest.fixture
async def loader() -> AsyncIterator[Loader]:
    made = Loader(Factory())
    yield made
    await made.close()


async def test_cache_fetches_once_and_keeps_few(store: MemoryObjects, cache: PolicyCache, tiny: Path) -> None:
    versions = [await publish(store.typed(), tiny, v) for v in range(4)]
    locals_ = await asyncio.gather(*(cache.get(versions[0]) for _ in range(5)))
    first_gets = store.gets
    assert len({local.folder for local in locals_}) == 1
    assert (locals_[0].folder / "model.safetensors").read_bytes() == (tiny / "model.safetensors").read_bytes()
    await cache.get(versions[0])
    assert store.gets == first_gets
    for version in versions[1:]:
        await cache.get(version, in_use=[versions[0]])
    assert cache.has(versions[0])
    assert not cache.has(versions[1])
    assert cache.has(versions[3])
    assert len(list(locals_[0].folder.parent.iterdir())) == 2


async def test_cache_names_what_is_wrong(store: MemoryObjects, cache: PolicyCache, tiny: Path) -> None:
    published = await publish(store.typed(), tiny, 1)
    with pytest.raises(PolicyUnavailable) as caught:
        await cache.get(some(7))
    assert caught.value.reason == "missing"
    store.down = True
    with pytest.raises(PolicyUnavailable) as caught:
        await cache.get(published)
    assert (caught.value.boundary, caught.value.reason) == ("store", "unavailable")
    store.down = False
    key = next(key for key in store.data if key.endswith("model.safetensors"))
    good, store.data[key] = store.data[key], store.data[key][:-1] + b"\0"
    with pytest.raises(PolicyRefused) as refused:
        await cache.get(published)
    assert refused.value.reason == "corrupt"
    store.data[key] = good
    assert (await cache.get(published)).manifest.version == 1


async def test_a_manifest_of_another_version_is_refused(
    store: MemoryObjects, cache: PolicyCache, tiny: Path
) -> None:
    one = await publish(store.typed(), tiny, 1)
    with pytest.raises(PolicyRefused, match="manifest is of run-a/1"):
        await cache.get(Published("run-a", 2, one.uri, one.sha256, one.bytes))


async def test_probe(engine: TorchEngine, tiny: Path, tiny_other: Path) -> None:
    assert await verify(engine, true_probe(tiny), "good") < 1e-4
    cases = {
        "probe_mismatch": [
            true_probe(tiny_other),
            true_probe(tiny).model_copy(update={"logprobs": [float("nan")] * (len(PROBE_IDS) - 1)}),
        ],
        "probe_missing": [Probe(), Probe(prompt_ids=[1, 2, 3], logprobs=[-1.0])],
    }
    for reason, probes in cases.items():
        for probe in probes:
            with pytest.raises(PolicyRefused) as caught:
                await verify(engine, probe, "bad")
            assert caught.value.reason == reason


async def local(store: MemoryObjects, cache: PolicyCache, folder: Path, version: int, **more: Any) -> Local:
    return await cache.get(await publish(store.typed(), folder, version, **more))


async def test_refused_weights_never_generate(
    store: MemoryObjects, cache: PolicyCache, loader: Loader, tiny: Path, tiny_other: Path
) -> None:
    """In mid-generation: the old policy is restored and the request goes on with it."""
    await loader.load(await local(store, cache, tiny, 1))
    engine, counting = loader.engine, Counting()
    task = asyncio.create_task(engine.generate([5, 6, 7], Sampling(max_new_tokens=300, seed=1), counting))
    while counting.count < 5:
        await asyncio.sleep(0.005)
    with pytest.raises(PolicyRefused) as caught:
        await loader.load(await local(store, cache, tiny_other, 2, probe=true_probe(tiny)))
    assert caught.value.reason == "probe_mismatch"
    result = await task
    assert set(result.versions) == {1}
    assert loader.engine is engine
    assert loader.resident is not None
    assert loader.resident.version == 1
    assert await verify(engine, true_probe(tiny), "restored") < 1e-4


async def test_refused_at_the_start_nothing_is_resident(
    store: MemoryObjects, cache: PolicyCache, loader: Loader, tiny: Path, tiny_other: Path
) -> None:
    with pytest.raises(PolicyRefused):
        await loader.load(await local(store, cache, tiny_other, 2, probe=true_probe(tiny)))
    assert loader.resident is None
    with pytest.raises(EngineUnavailable):
        _ = loader.engine


async def test_another_architecture_gets_another_engine(
    store: MemoryObjects, cache: PolicyCache, loader: Loader, tiny: Path, tmp_path: Path
) -> None:
    deep = make_tiny(tmp_path / "deep", layers=3)
    await loader.load(await local(store, cache, tiny, 1))
    first = loader.engine
    await loader.load(await local(store, cache, deep, 2))
    assert loader.engine is not first
    assert not first.alive
    assert await verify(loader.engine, true_probe(deep), "deep") < 1e-4


async def test_a_dead_engine_is_started_again(
    store: MemoryObjects, cache: PolicyCache, loader: Loader, tiny: Path
) -> None:
    policy = await local(store, cache, tiny, 1)
    await loader.load(policy)
    first = loader.engine
    await first.stop()
    assert not loader.alive
    await loader.load(policy)
    assert loader.alive
    assert loader.engine is not first


class HalfBroken(Factory):
    """Its first engine does not start."""

    async def make(self, name: str) -> Engine:
        engine = await super().make(name)
        if name == "vllm":

            async def fail(folder: Path, version: int) -> None:
                raise EngineUnavailable("no such processor")

            engine.start = fail  # type: ignore[method-assign]
        return engine


async def test_auto_falls_back_and_remembers(
    store: MemoryObjects, cache: PolicyCache, tiny: Path, tmp_path: Path
) -> None:
    factory = HalfBroken(["vllm", "torch"])
    loader = Loader(factory)
    await loader.load(await local(store, cache, tiny, 1))
    assert loader.alive
    await loader.load(await local(store, cache, make_tiny(tmp_path / "deep", layers=3), 2))
    assert factory.made == ["vllm", "torch", "torch"]
    await loader.close()
    only = Loader(HalfBroken(["vllm"]))
    for _ in range(2):
        with pytest.raises(EngineUnavailable):
            await only.load(await local(store, cache, tiny, 1))
