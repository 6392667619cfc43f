# expect: ok
# within: 20
"""Keeps the supervisor busy with signals."""

import os
import signal
import time

end = time.monotonic() + 1
while time.monotonic() < end:
    for number in (
        signal.SIGCHLD,
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGUSR1,
        signal.SIGSTOP,
        signal.SIGKILL,
    ):
        os.kill(1, number)
