"""From a closed group's message to sequences that can wait for their step."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
import structlog
from google.protobuf.message import DecodeError

from sandpiper.store.errors import CorruptObject, MissingObject
from sandpiper.store.objects import ObjectStore
from sandpiper.telemetry import metrics
from sandpiper.v1.common_pb2 import Blob
from sandpiper.v1.inference_pb2 import TurnTokens
from sandpiper.v1.training_pb2 import Trajectory, TrajectoryGroup
from services.learner.buffer import Waiting
from services.learner.training.sequences import BadTrajectory, TrainSequence, assemble

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Intake:
    """Fetches what messages refer to."""

    objects: ObjectStore

    async def receive(self, group: TrajectoryGroup, trained: Collection[str]) -> Waiting:
        """The group, with its tokens in memory. Episodes that are in `trained` are not trained again.

        A trajectory that cannot be trained keeps its reward, which the others are compared with. Raises
        StoreUnavailable.
        """
        began = time.monotonic()
        sequences = await asyncio.gather(*(self._sequence(group.run_id, t) for t in group.trajectories))
        pairs = [(s, t) for s, t in zip(sequences, group.trajectories, strict=True) if len(s.ids)]
        return Waiting(
            group_id=group.group_id,
            index=group.group_index,
            sequences=tuple(sequences),
            version_min={
                s.episode_id: min([t.version_min, *s.versions.tolist()])
                for s, t in pairs
                if s.episode_id not in trained
            },
            fate=asyncio.get_running_loop().create_future(),
            fetch_s=time.monotonic() - began,
        )

    async def _sequence(self, run_id: str, trajectory: Trajectory) -> TrainSequence:
        episode_id = trajectory.ref.episode_id
        try:
            turns = await asyncio.gather(*(self._turn(blob) for blob in _blobs(trajectory)))
            sequence = assemble(episode_id, run_id, turns)
        except (BadTrajectory, MissingObject, CorruptObject, DecodeError) as error:
            log.warning("trajectory_unusable", run_id=run_id, episode_id=episode_id, error=str(error))
            metrics.TRAJECTORIES_DROPPED.labels(reason="invalid").inc()
            sequence = _empty(episode_id)
        return sequence.judged(trajectory.reward, trajectory.passed, trajectory.trace_parent)

    async def _turn(self, blob: Blob) -> TurnTokens:
        return TurnTokens.FromString(await self.objects.get(blob))


def _blobs(trajectory: Trajectory) -> Iterable[Blob]:
    return trajectory.turns or ([trajectory.tokens] if trajectory.tokens.uri else [])


def _empty(episode_id: str) -> TrainSequence:
    none = np.array([], dtype=np.int64)
    return TrainSequence(episode_id, none, none, none.astype(np.float32), none)
