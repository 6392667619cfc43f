"""Whether a run is to be trained, and by whom: two small objects beside its checkpoints.

Invariants:
* `ended` is final;
* a learner commits a step only while `owner.json` holds its own claim: the newest wins, an older learner
  that is still computing finds out before it commits;
* claims of a run are numbered, so that what an older one commits late is known as such. Two learners that
  claim within the same moment can get the same number; of those only the one in `owner.json` commits, unless
  the other stalls between its last look and its write.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sandpiper.store.objects import ObjectStore


class Control(BaseModel):
    """What the last command said about a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: Literal["active", "paused", "ended"]
    reason: str = ""
    at: float = 0.0
    """When the command was sent, Unix seconds: an older one that is handled later (after a retry) is void."""


class Claim(BaseModel):
    """A learner's right to commit steps of a run, until the next claim."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int = Field(ge=1)
    token: str
    """Of the process: two that claim at the same moment have the same number."""


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

    async def claim(self, run_id: str, token: str) -> Claim:
        """Become the run's one writer."""
        while True:
            before = await self._owner(run_id)
            claim = Claim(number=before.number + 1 if before else 1, token=token)
            await self._objects.put(_owner_key(run_id), claim.model_dump_json().encode())
            if await self.holds(run_id, claim):  # else another one claimed in between
                return claim

    async def holds(self, run_id: str, claim: Claim) -> bool:
        """True while no other learner has claimed the run."""
        return await self._owner(run_id) == claim

    async def _owner(self, run_id: str) -> Claim | None:
        data = await self._objects.read(_owner_key(run_id))
        try:
            return None if data is None else Claim.model_validate_json(data)
        except ValidationError:  # damaged, and worth less than the run: whoever claims next replaces it
            return None


def _owner_key(run_id: str) -> str:
    return f"checkpoints/{run_id}/owner.json"
