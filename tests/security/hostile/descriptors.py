# expect: ok nonzero_exit
# within: 20
"""Uses up descriptors, inotify watches and pipes."""

import ctypes
import os

libc = ctypes.CDLL(None)
kept = []
try:
    while True:
        kept.append(os.pipe())
        libc.inotify_init()
except OSError:
    pass
