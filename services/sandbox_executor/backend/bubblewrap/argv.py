"""The bubblewrap command line."""

from __future__ import annotations

from dataclasses import dataclass

from services.sandbox_executor.backend.bubblewrap.settings import BubblewrapSettings
from services.sandbox_executor.backend.bubblewrap.system import ETC, HOST_ETC, System

LIB = "/opt/sandpiper"
BOOT = f"import sys; sys.path.insert(0, '{LIB}'); from supervisor.main import main; main(int(sys.argv[1]))"
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/workspace",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "TMPDIR": "/tmp",
    "USER": "sandbox",
    "SHELL": "/bin/sh",
    "PYTHONDONTWRITEBYTECODE": "1",
    "NPM_CONFIG_CACHE": "/tmp/npm",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
}
"""All that a program sees, besides what its command adds."""


@dataclass(frozen=True)
class Descriptors:
    """Descriptors that bubblewrap inherits."""

    control: int
    info: int
    seccomp: int | None


def build(
    settings: BubblewrapSettings, system: System, descriptors: Descriptors, disk_bytes: int, marker: str
) -> list[str]:
    """Arguments that start one supervisor. `marker` shows in the process list, for the reaper."""
    scratch = str(scratch_bytes(settings, disk_bytes))
    argv = [
        system.bwrap, "--unshare-all", "--die-with-parent", "--as-pid-1", "--new-session", "--clearenv",
        "--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--info-fd", str(descriptors.info),
        "--ro-bind", "/usr", "/usr",
    ]  # fmt: skip
    for name in ("lib", "lib32", "lib64", "bin", "sbin"):
        argv += ["--symlink", f"usr/{name}", f"/{name}"]
    for folder in system.hidden:
        argv += ["--size", "4096", "--perms", "0755", "--tmpfs", str(folder), "--remount-ro", str(folder)]
    for name in ETC:
        argv += ["--ro-bind", f"{system.lib}/etc/{name}", f"/etc/{name}"]
    for path in HOST_ETC:
        argv += ["--ro-bind-try", path, path]
    for name in ("supervisor", "runners"):
        argv += ["--ro-bind", f"{system.lib}/{name}", f"{LIB}/{name}"]
    for inside, outside in settings.read_only.items():
        argv += ["--ro-bind", str(outside), inside]
    argv += [
        "--proc", "/proc", "--dev", "/dev", "--dir", "/run", "--dir", "/var", "--symlink", "/tmp", "/var/tmp",
        "--size", str(disk_bytes), "--perms", "0755", "--tmpfs", "/workspace",
        "--size", scratch, "--perms", "1777", "--tmpfs", "/tmp",
        "--size", scratch, "--perms", "1777", "--tmpfs", "/dev/shm",
        "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/workspace",
    ]  # fmt: skip
    if descriptors.seccomp is not None:
        argv += ["--seccomp", str(descriptors.seccomp)]
    return [*argv, "--", system.python, "-I", "-S", "-c", BOOT, str(descriptors.control), marker]


def scratch_bytes(settings: BubblewrapSettings, disk_bytes: int) -> int:
    """Size of /tmp and of /dev/shm, each."""
    return min(settings.scratch_bytes, disk_bytes)
