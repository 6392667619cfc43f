"""Settings of the rollout orchestrator. Environment prefix `SANDPIPER_`."""

from __future__ import annotations

from sandpiper.settings import ServiceSettings


class OrchestratorSettings(ServiceSettings):
    """Shared settings plus these."""

    sweep_s: float = 1.0
    """Seconds between two looks at what is overdue; also the longest wait for admission."""
    resend_s: float = 60.0
    """A group that the learner has not trained after so many seconds is sent again (it drops repeats)."""
    executor_stale_s: float = 5.0
    """An executor that has not sent a heartbeat for so long takes no new commands."""
    batch: int = 200
    """Most messages in one transaction."""
