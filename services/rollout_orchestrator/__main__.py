"""`python -m services.rollout_orchestrator`"""

from __future__ import annotations

from functools import partial

from sandpiper.service import run

from .config import OrchestratorSettings
from .handlers import CONSUMER
from .wiring import start

if __name__ == "__main__":
    run(CONSUMER, OrchestratorSettings, lambda settings: partial(start, settings))
