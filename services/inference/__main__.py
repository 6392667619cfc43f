"""`python -m services.inference`"""

from __future__ import annotations

from functools import partial

from sandpiper.service import run
from services.inference.config import InferenceSettings
from services.inference.wiring import start

if __name__ == "__main__":
    run("inference", InferenceSettings, lambda settings: partial(start, settings))
