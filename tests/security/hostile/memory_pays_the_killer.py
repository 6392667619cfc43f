# expect: oom
# within: 20
"""Asks the memory killer to look elsewhere, then takes all."""

for value in ("-1000", "-17", "0"):
    try:
        with open("/proc/self/oom_score_adj", "w") as target:
            target.write(value)
    except OSError:
        pass
try:
    with open("/proc/1/oom_score_adj", "w") as target:
        target.write("1000")
        print("ESCAPED: the supervisor goes first")
except OSError:
    pass
hoard = []
while True:
    hoard.append(bytearray(b"x" * (1 << 20)))
