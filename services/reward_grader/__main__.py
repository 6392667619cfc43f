"""`python -m services.reward_grader`"""

from __future__ import annotations

from functools import partial

from sandpiper.service import run
from services.reward_grader.config import GraderSettings
from services.reward_grader.wiring import NAME, start

if __name__ == "__main__":
    run(NAME, GraderSettings, lambda settings: partial(start, settings))
