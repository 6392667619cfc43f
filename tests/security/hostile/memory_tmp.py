# expect: disk_limit
# within: 20
"""Fills /tmp."""

with open("/tmp/hoard", "wb") as hoard:
    while True:
        hoard.write(b"x" * 65536)
