# expect: wall_timeout
# limits: wall_s=1
# within: 20
"""A parent that waits in vfork for a child that never ends."""

import ctypes
import time

libc = ctypes.CDLL(None)
if libc.vfork() == 0:
    time.sleep(100000)
