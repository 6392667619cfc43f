# expect: oom
# within: 20
"""Each process stays below the limit; all together do not."""

import os
import time

for _ in range(8):
    if os.fork() == 0:
        hoard = b"x" * (48 << 20)
        time.sleep(60)
time.sleep(60)
