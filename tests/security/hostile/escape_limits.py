# expect: ok
# within: 20
"""Raises its own limits."""

import resource

for name in ("CPU", "FSIZE", "NOFILE", "CORE", "MSGQUEUE", "MEMLOCK"):
    number = getattr(resource, f"RLIMIT_{name}", 12)
    soft, hard = resource.getrlimit(number)
    try:
        resource.setrlimit(number, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print("ESCAPED:", name, hard)
    except (OSError, ValueError):
        pass
