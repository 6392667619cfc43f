"""Whether a run is to be trained, and by whom: two small objects beside its checkpoints.

Invariants:
* `ended` is final;
* a learner commits a step only while `owner.json` names its own token: the newest claim wins, an older
  learner that is still computing finds out before it commits.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from sandpiper.store.objects import ObjectStore


class Control(BaseModel):
    """What the last command said about a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: Literal["active", "paused", "ended"]
    reason: str = ""
    at: float = 0.0
    """When the command was sent, Unix seconds: an older one that is handled later (after a retry) is void."""


class Controls:
    """Control and ownership of all runs."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    async def get(self, run_id: str) -> Control | None:
        """None for a run that no command created."""
        data = await self._objects.read(f"checkpoints/{run_id}/control.json")
        return None if data is None else Control.model_validate_json(data)

    async def put(self, run_id: str, control: Control) -> Control:
        """Record a command. Returns what holds now: `ended` stays, and an older command changes nothing
        unless it ends the run."""
        before = await self.get(run_id)
        late = before is not None and control.at < before.at and control.state != "ended"
        if before is not None and (late or before.state == "ended"):
            return before
        await self._objects.put(f"checkpoints/{run_id}/control.json", control.model_dump_json().encode())
        return control

    async def claim(self, run_id: str, token: str) -> None:
        """Become the run's one writer."""
        await self._objects.put(f"checkpoints/{run_id}/owner.json", token.encode())

    async def owns(self, run_id: str, token: str) -> bool:
        """True while no other learner has claimed the run."""
        return await self._objects.read(f"checkpoints/{run_id}/owner.json") == token.encode()
