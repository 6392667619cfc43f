"""Results of commands by command id: stored before they are published, so a redelivery is answered alike."""

from __future__ import annotations

from sandpiper.store.objects import ObjectStore


class ResultStore:
    """Results of one service under `results/<service>/<command id>`."""

    def __init__(self, objects: ObjectStore, service: str) -> None:
        self._objects = objects
        self._prefix = f"results/{service}"

    async def get(self, command_id: str) -> bytes | None:
        """The stored result, None when the command was never finished."""
        return await self._objects.read(self._key(command_id))

    async def put(self, command_id: str, data: bytes) -> None:
        """Store a result. Call this before publishing it."""
        await self._objects.put(self._key(command_id), data)

    def _key(self, command_id: str) -> str:
        if not command_id or "/" in command_id:
            raise ValueError(f"not a command id: {command_id!r}")
        return f"{self._prefix}/{command_id}"
