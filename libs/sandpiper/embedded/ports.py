"""Loopback ports."""

from __future__ import annotations

import random
import socket

from sandpiper.embedded.errors import StackError

LOWEST, HIGHEST = 20_000, 32_000
"""Below the range that the kernel hands to outgoing connections, so that none takes ours."""


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """True if a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


class Ports:
    """Hands out free ports, each once."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()
        self._taken: set[int] = set()

    def take(self, wanted: int, what: str, how: str, host: str = "127.0.0.1") -> int:
        """`wanted` if it is free (0: any free port). StackError naming `what` and `how` to choose another."""
        if wanted:
            if wanted in self._taken or not is_free(wanted, host):
                raise StackError(f"port {wanted} for {what} is taken on {host}; {how}")
            self._taken.add(wanted)
            return wanted
        for _ in range(1000):
            port = self._rng.randint(LOWEST, HIGHEST)
            if port not in self._taken and is_free(port, host):
                self._taken.add(port)
                return port
        raise StackError(f"no free port between {LOWEST} and {HIGHEST} for {what}")
