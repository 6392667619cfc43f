"""The six services as processes: environment, health ports, names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from sandpiper.embedded import probes
from sandpiper.embedded.options import SERVICES, StackOptions
from sandpiper.embedded.process import Command
from sandpiper.embedded.supervisor import Unit


def instances(options: StackOptions) -> Iterator[tuple[str, str]]:
    """(service, instance name) of every process to run: `api`, `sandbox-executor`, `sandbox-executor-2`, …"""
    for service in SERVICES:
        for number in range(1, options.replicas.get(service, 0) + 1):
            yield service, service if number == 1 else f"{service}-{number}"


def module(service: str) -> str:
    return "services." + service.replace("-", "_")


def environment(
    service: str,
    options: StackOptions,
    inherited: Mapping[str, str],
    client_env: Mapping[str, str],
    health_port: int,
    work: Path,
    temp: Path,
) -> dict[str, str]:
    """What a service process sees: the caller's environment, the stack's settings, explicit extras."""
    env = dict(inherited)
    env.update(client_env)
    env.update(
        OTEL_SERVICE_NAME=service,
        SANDPIPER_HEALTH_PORT=str(health_port),
        SANDPIPER_DATA_DIR=str(work),
        SANDPIPER_DRAIN_S=f"{max(0.5, options.grace_s - 2)}",
        TMPDIR=str(temp),
        PYTHONUNBUFFERED="1",
        # Threads that spin while they wait would take the cores from the other services.
        OMP_WAIT_POLICY="PASSIVE",
    )
    if service == "api":
        env.update(SANDPIPER_HTTP__HOST=options.api_host, SANDPIPER_HTTP__PORT=str(options.api_port))
    if service == "inference":
        env["SANDPIPER_ENGINE"] = options.engine
        # Decoding is thousands of short operations: threads that wait for one another stall whenever one of
        # them loses its core, and here every core has other work too.
        env.setdefault("SANDPIPER_TORCH__THREADS", str(max(1, (os.cpu_count() or 1) // 2)))
    env.update(options.env)
    env.update(options.service_env.get(service, {}))
    return env


def unit(service: str, name: str, env: Mapping[str, str], log: Path, options: StackOptions) -> Unit:
    """One service process; ready when its `/readyz` says so."""
    command = Command(
        name=name,
        argv=[sys.executable, "-m", module(service)],
        env=env,
        log=log,
        grace_s=options.grace_s,
        cwd=Path(env["SANDPIPER_DATA_DIR"]),
    )
    probe = probes.http(int(env["SANDPIPER_HEALTH_PORT"]), "/readyz")
    return Unit(command, probe, ready_within_s=options.ready_within_s)
