# ruff: noqa: SIM105
# expect: wall_timeout
# limits: wall_s=1
# within: 20
"""Ignores every signal that can be ignored."""

import signal
import time

for number in signal.valid_signals():
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
time.sleep(100000)
