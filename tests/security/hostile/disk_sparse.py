# expect: nonzero_exit signaled disk_limit
# within: 20
"""A file that claims a terabyte."""

with open("hoard", "wb") as hoard:
    hoard.truncate(1 << 40)
