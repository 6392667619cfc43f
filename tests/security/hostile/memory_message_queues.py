# expect: ok
# within: 20
"""POSIX message queues and System V segments outlive their makers."""

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
for number in range(64):
    if libc.mq_open(b"/q%d" % number, os.O_CREAT | os.O_RDWR, 0o600, None) >= 0:
        print("ESCAPED: a message queue")
    if libc.shmget(number + 1, 1 << 20, 0o1600) >= 0:
        print("ESCAPED: a shared segment")
