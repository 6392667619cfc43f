# expect: cpu_timeout
# limits: cpu_s=0.5
# within: 20
"""Spins for ever."""

while True:
    pass
