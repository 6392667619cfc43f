# expect: oom
# within: 20
"""Shared anonymous memory."""

import mmap
import time

area = mmap.mmap(-1, 600 << 20)
for at in range(0, len(area), 4096):
    area[at] = 1
time.sleep(60)
