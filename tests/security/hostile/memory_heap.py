# expect: oom
# within: 20
"""Takes all memory, page by page."""

hoard = []
while True:
    hoard.append(bytearray(b"x" * (1 << 20)))
