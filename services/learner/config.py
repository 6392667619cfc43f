"""Settings of the learner. Environment: `SANDPIPER_<FIELD>`, nested `SANDPIPER_LEARNER__<FIELD>`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from sandpiper.settings import ServiceSettings


class LearnerOptions(BaseModel):
    """What only the learner has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    device: str = "auto"
    """`auto`: cuda where there is one, else cpu. Or a torch device such as `cuda:1`."""
    bf16: Literal["auto", "always"] = "auto"
    """Runs ask for bf16 autocast by default. `auto` computes in fp32 where bf16 is only emulated (CPUs
    without AVX512-BF16 or AMX: four times slower and less exact); `always` does what the run says."""
    threads: int | None = Field(None, ge=1)
    """Threads of tensor operations; unset takes every core."""
    micro_tokens: int | None = Field(None, ge=64)
    """Most padded tokens per forward pass, on top of the run's own bound; unset: 2048 on a CPU, else no
    bound."""
    loaded_runs: int = Field(1, ge=1)
    """Runs whose weights and optimizer state stay in memory at once. More runs take turns."""
    keep_checkpoints: int = Field(2, ge=1)
    """Checkpoints kept of a run that trains."""
    keep_when_over: int = Field(1, ge=0)
    """And of one that is over."""
    buffered_groups: int = Field(8192, ge=16)
    """Messages in hand at once. Each waits for its step, so this must exceed what all runs have in flight:
    (max_staleness + 1) * groups_per_step each."""
    poll_s: float = Field(15.0, gt=0)
    """How often a run that waits looks whether another learner was told to pause or end it."""
    retry_first_s: float = Field(1.0, gt=0)
    """First pause after a step that could not be committed; doubles up to a minute."""


class LearnerSettings(ServiceSettings):
    """Shared settings plus the learner's."""

    learner: LearnerOptions = LearnerOptions()
