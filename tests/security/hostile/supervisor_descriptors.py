# expect: ok
# within: 20
"""Writes garbage to every descriptor that it was born with, and looks for more."""

import os

for fd in range(3, 1024):
    try:
        os.fstat(fd)
    except OSError:
        continue
    print("ESCAPED: inherited descriptor", fd, os.readlink(f"/proc/self/fd/{fd}"))
