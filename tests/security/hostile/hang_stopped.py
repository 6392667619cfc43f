# expect: wall_timeout
# limits: wall_s=1
# within: 20
"""Stops all that it can, then itself."""

import os
import signal

if os.fork() == 0:
    while True:
        signal.pause()
os.kill(-1, signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGSTOP)
