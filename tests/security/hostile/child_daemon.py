# expect: ok
# within: 20
"""A daemon by the book: setsid, double fork, streams closed, signals ignored."""

import os
import signal
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.closerange(0, 64)
        os.chdir("/")
        while True:
            time.sleep(1)
    os._exit(0)
os.wait()
