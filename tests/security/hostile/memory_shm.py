# expect: disk_limit
# within: 20
"""Fills /dev/shm."""

with open("/dev/shm/hoard", "wb") as hoard:
    while True:
        hoard.write(b"x" * 65536)
