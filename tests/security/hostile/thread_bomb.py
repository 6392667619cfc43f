# expect: pids_limit nonzero_exit
# within: 20
"""Threads until the system refuses."""

import threading
import time

while True:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
