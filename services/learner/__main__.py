"""`python -m services.learner`"""

from __future__ import annotations

from functools import partial

from sandpiper.service import Start, run
from services.learner.config import LearnerSettings


def starting(settings: LearnerSettings) -> Start:
    """What brings the service up; torch is imported here, after the settings were found good."""
    from services.learner.wiring import start  # noqa: PLC0415

    return partial(start, settings)


if __name__ == "__main__":
    run("learner", LearnerSettings, starting)
