"""The proof at start: what a program in a sandbox really sees."""

from __future__ import annotations

from services.sandbox_executor.backend.protocol import CreateFailed, Limits, RunSpec, Sandbox

PROGRAM = (
    "cat /proc/self/status; cat /proc/net/dev; echo files: $(ls -A /home /root /mnt 2>/dev/null); "
    "cat /proc/1/environ >/dev/null 2>&1 && echo supervisor: open; "
    "(: > /probe) 2>/dev/null && echo root: writable; "
    "exit 0"
)
LIMITS = Limits(
    wall_s=20, cpu_s=10, memory_bytes=128 << 20, pids=32, disk_bytes=4 << 20, output_bytes=64 << 10,
    file_bytes=1 << 20, output_hard_bytes=1 << 20, max_files=1000,
)  # fmt: skip


async def prove(sandbox: Sandbox, accounting: str) -> tuple[str, ...]:
    """What holds, as short words. Raises CreateFailed when a fence that must stand does not."""
    evidence = await sandbox.run(RunSpec(["/bin/sh", "-c", PROGRAM], LIMITS))
    if evidence.exit_code or evidence.stop:
        raise CreateFailed(
            "probe_failed", evidence.stderr.decode("utf-8", "replace")[-300:] or "the probe failed"
        )
    lines = evidence.stdout.decode("utf-8", "replace").splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    interfaces = [
        line.split(":")[0].strip() for line in lines if line.count(":") == 1 and line.startswith(" ")
    ]
    faults = _faults(status, lines, [name for name in interfaces if "|" not in name])
    if faults:
        raise CreateFailed("isolation", "; ".join(faults))
    seccomp = ("seccomp",) if status.get("Seccomp") == "2" else ()
    return ("user", "pid", "net", "ipc", "uts", "mount", "cgroup", "no-new-privs", *seccomp, accounting)


def _faults(status: dict[str, str], lines: list[str], interfaces: list[str]) -> list[str]:
    checks = {
        "the uid is not 1000": status.get("Uid", "").split() != ["1000"] * 4,
        "capabilities are left": any(
            int(status.get(name, "1"), 16) for name in ("CapEff", "CapPrm", "CapAmb")
        ),
        "new privileges are possible": status.get("NoNewPrivs") != "1",
        f"network interfaces are visible: {interfaces}": interfaces not in ([], ["lo"]),
        "host folders are visible": "files:" not in lines,
        "the supervisor can be read": "supervisor: open" in lines,
        "the root folder is writable": "root: writable" in lines,
    }
    return [text for text, failed in checks.items() if failed]
