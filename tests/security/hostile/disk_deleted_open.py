# expect: disk_limit
# within: 20
"""Fills the workspace with a file that has no name."""

import os

hoard = os.open("hoard", os.O_CREAT | os.O_WRONLY)
os.unlink("hoard")
while True:
    os.write(hoard, b"x" * 65536)
