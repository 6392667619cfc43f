# expect: signaled
# within: 20
"""Dumps core where the host would run a handler."""

import os

for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/overcommit_memory"):
    try:
        with open(path, "w") as target:
            target.write("|/workspace/handler")
        print("ESCAPED:", path)
    except OSError:
        pass
os.abort()
