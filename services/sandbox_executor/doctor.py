"""`--doctor`: what this host supports for sandboxes, what is missing, and what to do about it."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from sandpiper.settings import SettingsError, load
from services.sandbox_executor.backend.bubblewrap import system
from services.sandbox_executor.backend.bubblewrap.probe import LIMITS
from services.sandbox_executor.backend.bubblewrap.seccomp import filter_program
from services.sandbox_executor.backend.cgroup import find_tree
from services.sandbox_executor.backend.protocol import RunSpec, SandboxError, SandboxSpec
from services.sandbox_executor.backend.reaper import instance_name
from services.sandbox_executor.config import ExecutorSettings
from services.sandbox_executor.wiring import make_backend


@dataclass(frozen=True)
class Finding:
    """One fact about the host. `level` is ok, weaker or missing; missing means that no sandbox can run."""

    name: str
    level: str
    detail: str


def main(*, as_json: bool) -> int:
    """Print the findings; 0 when sandboxes work."""
    try:
        settings = load(ExecutorSettings)
    except SettingsError as error:
        print(f"bad settings: {error}")
        return 2
    findings = [*host_findings(settings), asyncio.run(try_sandbox(settings))]
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{finding.level:8} {finding.name:16} {finding.detail}")
    return 1 if any(finding.level == "missing" for finding in findings) else 0


def host_findings(settings: ExecutorSettings) -> Iterator[Finding]:
    """What can be told without starting anything."""
    yield Finding("kernel", "ok", f"{platform.release()} {platform.machine()}")
    yield _bubblewrap(settings)
    try:
        yield Finding("python", "ok", system.find_python(settings.bubblewrap))
    except SandboxError as error:
        yield Finding("python", "missing", error.detail)
    for language in ("python", "javascript"):
        if language not in system.languages():
            yield Finding(language, "weaker", "no interpreter below /usr: its tasks cannot run here")
    yield _namespaces()
    yield _groups(settings)
    if filter_program() is None:
        yield Finding("seccomp", "weaker", f"no system call table for {platform.machine()}")
    else:
        yield Finding("seccomp", "ok", "own filter for this architecture")
    if os.geteuid() == 0:
        last = settings.bubblewrap.uid_base + settings.bubblewrap.uid_count - 1
        yield Finding(
            "host uid", "ok", f"root: one uid per sandbox, {settings.bubblewrap.uid_base} to {last}"
        )
    else:
        yield Finding(
            "host uid", "weaker", f"all sandboxes share uid {os.geteuid()}; root gives each its own"
        )


def _bubblewrap(settings: ExecutorSettings) -> Finding:
    path = shutil.which(settings.bubblewrap.bwrap)
    if path is None:
        return Finding("bubblewrap", "missing", "install the package bubblewrap")
    version = subprocess.run(
        [path, "--version"], capture_output=True, text=True, check=False, timeout=10
    ).stdout
    return Finding("bubblewrap", "ok", f"{path}, {version.strip()}")


def _namespaces() -> Finding:
    for path, bad in (
        ("/proc/sys/kernel/unprivileged_userns_clone", "0"),
        ("/proc/sys/user/max_user_namespaces", "0"),
    ):
        if Path(path).exists() and Path(path).read_text().strip() == bad:
            return Finding("user namespaces", "missing", f"{path} is {bad}; set it to allow them")
    restricted = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    if restricted.exists() and restricted.read_text().strip() == "1":
        return Finding(
            "user namespaces", "weaker", f"{restricted} is 1: bubblewrap needs an AppArmor profile"
        )
    return Finding("user namespaces", "ok", "allowed")


def _groups(settings: ExecutorSettings) -> Finding:
    if settings.bubblewrap.cgroup == "off":
        return Finding("control groups", "weaker", "switched off in the settings")
    instance = instance_name()
    tree = find_tree(instance)
    if tree is None:
        detail = "not writable: memory and processes are limited by rlimits and polling"
        return Finding("control groups", "weaker", detail)
    tree.clear(instance)
    return Finding("control groups", "ok", f"{tree.version}: memory, processes and CPU counted by the kernel")


async def try_sandbox(settings: ExecutorSettings) -> Finding:
    """Start one, run something, say how long it took."""
    backend = make_backend(settings)
    try:
        await backend.start()
        began = time.perf_counter()
        sandbox = await backend.create(SandboxSpec("doctor", 4 << 20))
        created = time.perf_counter()
        await sandbox.run(RunSpec(["/bin/true"], LIMITS))
        ran = time.perf_counter()
        detail = f"created in {(created - began) * 1e3:.0f} ms, a run in {(ran - created) * 1e3:.0f} ms: "
        return Finding("sandbox", "ok", detail + " ".join(backend.isolation))
    except (SandboxError, OSError) as error:
        return Finding("sandbox", "missing", str(error))
    finally:
        await backend.stop()
