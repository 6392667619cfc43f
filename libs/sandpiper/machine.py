"""What this machine's processor can do."""

from __future__ import annotations

import platform
from pathlib import Path


def cpu_flags() -> frozenset[str]:
    """Features as Linux names them; empty where they cannot be read."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    named = (line.split(":", 1)[1].split() for line in lines if line.startswith("flags"))
    return frozenset(next(named, []))


def multiplies_bf16() -> bool:
    """True where matrix products in bfloat16 are native; elsewhere they are slower than those in float32."""
    return platform.machine() in {"aarch64", "arm64"} or bool({"amx_bf16", "avx512_bf16"} & cpu_flags())
