# expect: output_limit
# within: 20
"""Many talk at once."""

import os

for _ in range(8):
    if os.fork() == 0:
        break
while True:
    os.write(1, b"x" * 65536)
