# expect: wall_timeout
# limits: wall_s=1
# within: 20
"""Closes its output and stays."""

import os
import time

os.closerange(0, 64)
time.sleep(100000)
