# ruff: noqa: SIM105
# expect: pids_limit
# within: 20
"""Forks for ever and shrugs at every refusal."""

import os

while True:
    try:
        os.fork()
    except OSError:
        pass
