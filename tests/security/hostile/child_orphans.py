# expect: ok
# within: 20
"""Five hundred orphans that end at once: somebody has to bury them."""

import os

for _ in range(500):
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.wait()
