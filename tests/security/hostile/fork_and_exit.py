# expect: ok nonzero_exit pids_limit cpu_timeout wall_timeout
# within: 20
"""A process that is always a new one: each generation forks the next and ends."""

import os

while True:
    if os.fork():
        os._exit(0)
