"""`python -m services.learner`"""

from __future__ import annotations

import os
from functools import partial

from sandpiper.service import Start, run
from services.learner.config import LearnerSettings


def starting(settings: LearnerSettings) -> Start:
    """What brings the service up; torch is imported here, after the settings were found good.

    Its threads are told to sleep while they wait for each other: on cores that inference uses too, spinning
    costs a third of the time.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from services.learner.wiring import start  # noqa: PLC0415

    return partial(start, settings)


if __name__ == "__main__":
    run("learner", LearnerSettings, starting)
