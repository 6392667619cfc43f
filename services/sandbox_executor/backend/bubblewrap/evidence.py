"""Between the supervisor's words and the protocol's: run requests, and evidence from a report and kernel
counters.
"""

from __future__ import annotations

import math
from typing import Any

from services.sandbox_executor.backend.bubblewrap.argv import ENVIRONMENT, scratch_bytes
from services.sandbox_executor.backend.bubblewrap.settings import BubblewrapSettings
from services.sandbox_executor.backend.cgroup.base import Counters
from services.sandbox_executor.backend.protocol import Limits, RunEvidence, RunSpec, Stop

STOPS: tuple[Stop, ...] = ("", "wall", "cpu", "output", "files", "memory", "pids")
_KERNEL_SLACK = 4 << 20
"""Page tables, stacks and descriptors of a small program; charged to the group, not asked for by it."""


def request(spec: RunSpec, settings: BubblewrapSettings, *, gated: bool) -> dict[str, Any]:
    """The header of a run. `gated`: the program waits until the host has placed it, and the host counts."""
    limits = spec.limits
    return {
        "op": "run",
        "argv": list(spec.argv),
        "env": {**ENVIRONMENT, **spec.env},
        "stdin_size": len(spec.stdin),
        "private_size": len(spec.private_input),
        "private_channel": spec.private_channel,
        "output_cap": limits.output_bytes,
        "output_hard": limits.output_hard_bytes,
        "wall_us": int(limits.wall_s * 1e6),
        "cpu_us": int(limits.cpu_s * 1e6),
        "memory": limits.memory_bytes,
        "pids": limits.pids,
        "max_files": limits.max_files,
        "gated": gated,
        "rlimits": rlimits(limits, settings, gated=gated),
    }


def body(spec: RunSpec) -> bytes:
    """What follows the header."""
    return spec.stdin + spec.private_input


def rlimits(limits: Limits, settings: BubblewrapSettings, *, gated: bool) -> dict[str, int]:
    """Per-process limits. Without a control group they are the only ones for processes and memory besides
    polling.
    """
    values = {
        "CPU": math.ceil(limits.cpu_s) + 1,
        "FSIZE": limits.file_bytes,
        "NOFILE": settings.open_files,
        "CORE": 0,
        "MSGQUEUE": 0,
        "MEMLOCK": 64 << 10,
    }
    if not gated:
        values["NPROC"] = limits.pids + 1  # the supervisor counts too
        # A backstop against what grows faster than the supervisor polls; well above the limit, because a
        # refused allocation looks like any error of the program, while being over the limit is seen as `oom`.
        values["DATA"] = 4 * limits.memory_bytes + (1 << 30)
    return values


def group_memory(limits: Limits, disk_bytes: int, settings: BubblewrapSettings) -> int:
    """The kernel's hard limit: files in memory are charged to the group, so they get their room on top.

    Anonymous memory above `memory_bytes` ends the run by `exceeded`.
    """
    return limits.memory_bytes + disk_bytes + 2 * scratch_bytes(settings, disk_bytes) + _KERNEL_SLACK


def exceeded(counters: Counters, limits: Limits) -> Stop:
    """Which limit the kernel's counters are over, if any."""
    if counters.cpu_user_s + counters.cpu_system_s > limits.cpu_s:
        return "cpu"
    if counters.memory_anon > limits.memory_bytes:
        return "memory"
    if counters.pids_denied > max(256, 8 * limits.pids):
        return "pids"
    return ""


def from_report(
    report: dict[str, Any], data: bytes, counters: Counters | None, limits: Limits, source: str
) -> RunEvidence:
    """Evidence; kernel counters replace the supervisor's own counts where there are any."""
    stdout_size, stderr_size, _ = report["sizes"]
    stop = report["stop"].decode()
    if stop not in STOPS:
        raise ValueError(f"unknown stop {stop!r}")
    counted = counters or _own_counts(report, limits)
    return RunEvidence(
        exit_code=report["exit"],
        signal=report["signal"],
        stop=stop,
        wall_s=report["wall_us"] / 1e6,
        cpu_user_s=counted.cpu_user_s,
        cpu_system_s=counted.cpu_system_s,
        memory_peak_bytes=counted.memory_peak,
        pids_peak=counted.pids_peak,
        stdout=data[:stdout_size],
        stderr=data[stdout_size : stdout_size + stderr_size],
        stdout_bytes=report["stdout_bytes"],
        stderr_bytes=report["stderr_bytes"],
        stdout_cut=bool(report["stdout_cut"]),
        stderr_cut=bool(report["stderr_cut"]),
        channel=data[stdout_size + stderr_size :],
        disk_bytes=report["disk"],
        disk_full=bool(report["disk_full"]),
        disk_seen_full=bool(report["disk_seen_full"]),
        file_at_limit=bool(report["file_at_limit"]),
        killed=report["killed"],
        oom_kills=counted.oom_kills,
        pids_denied=counted.pids_denied,
        source=source,
    )


def _own_counts(report: dict[str, Any], limits: Limits) -> Counters:
    """Without kernel counters: reaped usage and what polling saw.

    A process table that was seen full, or was full when the main process ended, counts as one denied fork.
    """
    most = max(report["pids_seen"], report["killed"] + 1)
    return Counters(
        cpu_user_s=report["cpu_user_us"] / 1e6,
        cpu_system_s=report["cpu_system_us"] / 1e6,
        memory_peak=report["max_rss"],
        memory_anon=0,
        oom_kills=0,
        pids_peak=most,
        pids_denied=int(most >= limits.pids),
    )
