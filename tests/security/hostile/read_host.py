# ruff: noqa: E501
# expect: ok
# within: 20
"""Reads what belongs to the host, by name and by detour."""

import os
import sys

CANARY = sys.argv[1]
PATHS = [
    CANARY, f"/proc/1/root{CANARY}", f"/proc/self/root{CANARY}", f"/../../../..{CANARY}", "/etc/shadow", "/root",
    "/home", "/proc/1/environ", "/proc/1/mem", "/proc/1/cwd/", "/proc/1/fd/", "/proc/1/maps", "/proc/1/root/",
    "/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/proc/kcore", "/proc/kmsg", "/var/run/docker.sock", "/sys/kernel",
    "/proc/1/task/1/environ", "/proc/1/syscall", "/proc/1/stack",
]  # fmt: skip
for path in PATHS:
    try:
        if os.path.isdir(path):
            found = os.listdir(path)
        else:
            with open(path, "rb") as source:
                found = source.read(16)
    except OSError:
        continue
    if found:
        print("ESCAPED:", path, found)
for path, _, files in os.walk("/"):
    if not path.startswith("/proc") and os.path.basename(CANARY) in files:
        print("ESCAPED: found", path)
secrets = [
    name for name in os.environ if any(word in name for word in ("KEY", "TOKEN", "SECRET", "SANDPIPER"))
]
if secrets:
    print("ESCAPED: the environment holds", secrets)
