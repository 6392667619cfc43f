"""The probe: proof that the engine serves the weights that were published."""

from __future__ import annotations

import math

from sandpiper.store.policies import Probe
from services.inference.engines.base import Engine
from services.inference.failures import PolicyRefused


async def verify(engine: Engine, probe: Probe, what: str) -> float:
    """Score the probe's prompt; returns the mean absolute difference to the manifest, in nats.

    Raises PolicyRefused(`probe_mismatch`) beyond the tolerance or for a number that is none. An empty probe
    proves nothing and is refused too.
    """
    if len(probe.prompt_ids) < 2 or len(probe.logprobs) != len(probe.prompt_ids) - 1:
        raise PolicyRefused("probe_missing", f"{what}: the manifest has no usable probe")
    scored = await engine.score(probe.prompt_ids)
    error = sum(abs(a - b) for a, b in zip(scored, probe.logprobs, strict=True)) / len(scored)
    if not math.isfinite(error) or error > probe.tolerance:
        raise PolicyRefused(
            "probe_mismatch",
            f"{what}: log-probs differ by {error:.4f} on average, tolerance {probe.tolerance}",
        )
    return error
