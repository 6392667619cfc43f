"""`python -m services.sandbox_executor [--doctor [--json]]`"""

from __future__ import annotations

import sys
from functools import partial

from sandpiper.service import run
from services.sandbox_executor import doctor
from services.sandbox_executor.config import ExecutorSettings
from services.sandbox_executor.wiring import NAME, start

if __name__ == "__main__":
    if "--doctor" in sys.argv[1:]:
        sys.exit(doctor.main(as_json="--json" in sys.argv[1:]))
    run(NAME, ExecutorSettings, lambda settings: partial(start, settings))
