"""Readiness probes. Each answers or raises within seconds."""

from __future__ import annotations

import asyncio

import asyncpg

from sandpiper.embedded.supervisor import Probe


def tcp(port: int, host: str = "127.0.0.1") -> Probe:
    """Something accepts connections."""

    async def probe() -> bool:
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        return True

    return probe


def http(port: int, path: str, host: str = "127.0.0.1") -> Probe:
    """The path answers with a 2xx status."""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode()

    async def probe() -> bool:
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(request)
            status = await reader.readline()
        finally:
            writer.close()
        return status.split(b" ")[1:2] != [] and status.split(b" ")[1].startswith(b"2")

    return probe


def postgres(port: int, user: str, password: str, database: str = "postgres") -> Probe:
    """A log-in succeeds and a query is answered."""

    async def probe() -> bool:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=port, user=user, password=password, database=database, ssl=False, timeout=3
        )
        try:
            return bool(await connection.fetchval("select 1") == 1)
        finally:
            await connection.close(timeout=2)

    return probe
