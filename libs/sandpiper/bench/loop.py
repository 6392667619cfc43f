"""Where the time of a run goes: from its episodes and steps as the api shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]

STAGES = ("generation", "execution", "grading", "queues")


@dataclass
class LoopTimes:
    """Seconds, summed over episodes, by stage; and the pipeline's own cost of each turn."""

    stages: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    turn_overhead_s: list[float] = field(default_factory=list)
    episodes: int = 0

    def shares(self) -> dict[str, float]:
        """Share of the episodes' time in each stage."""
        total = sum(self.stages.values())
        return {name: seconds / total if total else 0.0 for name, seconds in self.stages.items()}


def episode_times(times: LoopTimes, episode: Json) -> None:
    """Add one graded episode with its turns and attempts.

    Grading is from the last result of the policy to the verdict. Queues are all the rest: waiting for
    admission to the engine or a slot, transport, and the orchestrator's own work.
    """
    ended = _verdict_at(episode)
    turns = [turn for turn in episode["turns"] if turn["generated_at"] is not None]
    if ended is None or not turns:
        return
    times.episodes += 1
    generation = sum(turn["generate_s"] or 0.0 for turn in turns)
    execution = sum(_execution_s(turn) for turn in turns)
    last = max(turn["executed_at"] or turn["generated_at"] for turn in turns)
    grading = max(0.0, ended - last)
    whole = ended - episode["created_at"]
    times.stages["generation"] += generation
    times.stages["execution"] += execution
    times.stages["grading"] += grading
    times.stages["queues"] += max(0.0, whole - generation - execution - grading)
    times.turn_overhead_s += [_overhead_s(turn) for turn in turns if turn["executed_at"] is not None]


def _verdict_at(episode: Json) -> float | None:
    done = [attempt["ended_at"] for attempt in episode["attempts"] if attempt["state"] == "done"]
    return done[0] if done else None


def _execution_s(turn: Json) -> float:
    usage = turn["usage"] or {}
    return float(usage.get("wall_s", 0.0)) + float(usage.get("setup_s", 0.0))


def _overhead_s(turn: Json) -> float:
    """Of a turn's time, what neither engine nor sandbox spent or queued: transport and state machine."""
    whole = float(turn["executed_at"]) - float(turn["requested_at"])
    engine = float(turn["generate_s"] or 0.0) + float(turn["generate_queued_s"] or 0.0)
    sandbox = _execution_s(turn) + float((turn["usage"] or {}).get("queued_s", 0.0))
    return max(0.0, whole - engine - sandbox)


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest-rank percentile, `share` in 0..1; 0.0 of nothing."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def summary(times: LoopTimes, run: Json, steps: Sequence[Json]) -> dict[str, Any]:
    """The JSON of `scripts/bench loop`."""
    wall = run["finished_at"] - run["started_at"]
    learning = sum(step["seconds"] for step in steps)
    return {
        "bench": "loop",
        "episodes": times.episodes,
        "steps": len(steps),
        "wall_s": round(wall, 2),
        "episodes_per_s": round(times.episodes / wall, 3),
        "share_of_episode_time": {name: round(share, 4) for name, share in times.shares().items()},
        "learning_share_of_wall": round(learning / wall, 4),
        "turn_overhead_p50_ms": round(1000 * percentile(times.turn_overhead_s, 0.50), 1),
        "turn_overhead_p99_ms": round(1000 * percentile(times.turn_overhead_s, 0.99), 1),
    }
