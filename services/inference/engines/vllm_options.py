"""vLLM's arguments and environment from our settings."""

from __future__ import annotations

from typing import Any

from services.inference.config import GIB, InferenceSettings
from services.inference.engines.torch_machine import pick_dtype
from services.inference.engines.vllm_engine import VllmOptions

IN_CORE = "vllm.v1.executor.uniproc_executor.UniProcExecutor"
"""Named in full, since vLLM replaces the short name `uni` on CPUs."""


def vllm_options(settings: InferenceSettings, *, cpu: bool) -> VllmOptions:
    """For the CPU build or the GPU build."""
    vllm = settings.vllm
    arguments: dict[str, Any] = {
        "dtype": pick_dtype(vllm.dtype, "cpu" if cpu else "cuda"),
        "max_num_seqs": settings.max_batch,
        "max_model_len": settings.max_model_len,
        "enforce_eager": vllm.enforce_eager,
        "enable_prefix_caching": vllm.prefix_caching,
        "tensor_parallel_size": vllm.tensor_parallel_size,
        "use_tqdm_on_load": False,
    }
    if cpu:
        arguments["kv_cache_memory_bytes"] = int(vllm.kv_cache_gib * GIB)
        # A prompt that is read in chunks makes vLLM rewind the generators of seeded requests, which those of
        # a CPU cannot (0.32: the engine dies). So prompts are read whole, and a pass takes what that needs.
        arguments["enable_chunked_prefill"] = False
        if vllm.tensor_parallel_size == 1:
            # A worker process of its own costs half the speed on two cores: the engine spins while it waits.
            arguments["distributed_executor_backend"] = IN_CORE
    else:
        arguments["gpu_memory_utilization"] = vllm.gpu_memory_utilization
        arguments["max_num_batched_tokens"] = vllm.max_num_batched_tokens
    return VllmOptions(arguments | vllm.arguments, _environment(settings, cpu))


def _environment(settings: InferenceSettings, cpu: bool) -> dict[str, str]:
    environment = {
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_DO_NOT_TRACK": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "HF_HUB_OFFLINE": "1",
    }
    if settings.vllm.enforce_eager:
        # One helper of the sampler is compiled even in eager mode: 25 s and a C++ compiler for nothing.
        environment["TORCHDYNAMO_DISABLE"] = "1"
    if cpu:
        environment["VLLM_CPU_OMP_THREADS_BIND"] = settings.vllm.threads_bind
    if cpu and settings.vllm.threads is not None:
        environment["OMP_NUM_THREADS"] = str(settings.vllm.threads)
    return environment
