# expect: ok
# within: 20
"""A tree deeper than any path may be long, here and in the scratch folders."""

import os

for start in ("/workspace", "/tmp", "/dev/shm"):
    os.chdir(start)
    for _ in range(300):
        os.mkdir("d" * 20)
        os.chdir("d" * 20)
    open("bottom", "w").close()
