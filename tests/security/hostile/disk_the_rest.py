# expect: ok
# within: 20
"""Looks for any other place that can be written to."""

import os

places = 0
for path, folders, _ in os.walk("/"):
    if path.startswith(("/proc", "/workspace", "/tmp", "/dev/shm")):
        folders.clear()
        continue
    try:
        open(os.path.join(path, "hoard"), "wb").close()
    except OSError:
        continue
    print("ESCAPED: can write to", path)
