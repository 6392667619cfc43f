"""`python -m services.api`"""

from __future__ import annotations

from functools import partial

from sandpiper.service import run
from services.api.config import ApiSettings
from services.api.wiring import NAME, start

if __name__ == "__main__":
    run(NAME, ApiSettings, lambda settings: partial(start, settings))
