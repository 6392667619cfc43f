"""Settings of the inference service. Environment: `SANDPIPER_<FIELD>`, nested `SANDPIPER_VLLM__<FIELD>`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sandpiper.settings import ServiceSettings

EngineName = Literal["auto", "vllm", "torch", "stub"]
GIB = 1 << 30


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class VllmSettings(_Group):
    """How vLLM is started. Defaults suit a small machine that also trains; a GPU ignores what is for CPUs."""

    dtype: str = "auto"
    """`auto`: bfloat16 on GPUs and CPUs that multiply it natively, else float32. Or a name of vLLM's."""
    kv_cache_gib: float = Field(1.0, gt=0)
    """Memory for keys and values on a CPU."""
    gpu_memory_utilization: float = Field(0.85, gt=0, le=1)
    """Share of a GPU's memory that vLLM takes, weights included."""
    tensor_parallel_size: int = Field(1, ge=1)
    max_num_batched_tokens: int = Field(2048, ge=64)
    """On a GPU: most tokens in one forward pass; longer prompts are read in chunks of it."""
    enforce_eager: bool = True
    """No compilation and no CUDA graphs: starts faster, needs no compiler; on a GPU False is faster."""
    prefix_caching: bool = True
    threads_bind: str = "nobind"
    """VLLM_CPU_OMP_THREADS_BIND: cores for the worker's threads. `nobind` leaves them to the scheduler,
    which is best beside a learner; `auto` keeps one core free, which on two cores halves the speed."""
    threads: int | None = Field(None, ge=1)
    """Worker threads with `nobind`; unset takes every core."""
    arguments: dict[str, Any] = {}
    """More arguments of vLLM's AsyncEngineArgs, as JSON."""


class TorchSettings(_Group):
    """The transformers engine."""

    dtype: Literal["auto", "bfloat16", "float32", "float16"] = "auto"
    """`auto`: bfloat16 on an accelerator and where the CPU multiplies it natively, else float32."""
    device: str = "auto"
    """`auto`: cuda where there is one, else cpu."""
    threads: int | None = Field(None, ge=1)
    kv_cache_gib: float = Field(2.0, gt=0)
    """Memory for keys and values of what is being generated."""
    prefix_cache_gib: float = Field(1.0, ge=0)
    """Memory for those of ended requests, so that the next turn goes on where the last one ended."""


class StubSettings(_Group):
    """Fixed replies, for benches of everything else."""

    replies: tuple[str, ...] = Field(("```python\npass\n```",), min_length=1)
    tokens_per_s: float = Field(1000.0, gt=0)
    """Pace of each request."""


class InferenceSettings(ServiceSettings):
    """Shared settings plus these."""

    engine: EngineName = "auto"
    """`auto`: vLLM where it is installed and faster, and the model is worth its start; else torch."""
    max_batch: int = Field(64, ge=1, le=4096)
    """Requests that the engine generates for at once."""
    queue: int = Field(256, ge=1)
    """Requests taken from the topic at once, those that wait for another policy included."""
    max_model_len: int | None = Field(2048, ge=16)
    """Most tokens of prompt plus output; lowered to what the model can. None: the model's own limit."""
    policy_cache: int = Field(3, ge=1)
    """Policies kept on local disk, besides the one in use."""
    switch_after_s: float = Field(5.0, ge=0)
    """A request for another run or a pinned version waits at most about so long for its turn."""
    turn_s: float = Field(600.0, gt=0)
    """Deadline of a request that names none."""
    small_model_mib: float = Field(64.0, ge=0)
    """With `auto`: weights below this are served by torch; vLLM would start longer than they run."""
    vllm: VllmSettings = VllmSettings()
    torch: TorchSettings = TorchSettings()
    stub: StubSettings = StubSettings()
