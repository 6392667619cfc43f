# expect: cpu_timeout
# limits: cpu_s=0.5
# within: 20
"""Spins in several processes, each below the limit of one for long."""

import os

for _ in range(3):
    os.fork()
while True:
    pass
