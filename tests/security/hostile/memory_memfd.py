# expect: oom nonzero_exit
# within: 20
"""Files that live in memory and in no folder."""

import os

kept = []
while True:
    kept.append(os.memfd_create("hoard"))
    os.write(kept[-1], b"x" * (8 << 20))
