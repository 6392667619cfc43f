"""The one table of topics: topic -> message -> owner -> key -> partitions -> retention.

Everything that creates, produces to or consumes from a topic reads this table; there is no other list.
"""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import Message

from sandpiper.v1.events_pb2 import DeadLetter, EpisodeEvent
from sandpiper.v1.grading_pb2 import EpisodeGraded, GradeEpisode
from sandpiper.v1.inference_pb2 import GenerateTurn, TurnGenerated
from sandpiper.v1.run_pb2 import RunCommand
from sandpiper.v1.sandbox_pb2 import ExecutorHeartbeat, SandboxCommand, SandboxResult
from sandpiper.v1.tasks_pb2 import TaskSetSubmitted
from sandpiper.v1.training_pb2 import PolicyPublished, TrainingStep, TrajectoryGroup

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True)
class Topic:
    """One topic. `owner` is the only service (or services) that may produce to it."""

    name: str
    message: type[Message]
    owner: tuple[str, ...]
    key: str
    partitions: int
    retention_ms: int
    compacted: bool = False

    @property
    def dlq(self) -> str:
        """Name of the topic that takes what consumers of this one cannot handle."""
        return f"{self.name}.dlq"


TASKS_SUBMITTED = Topic("tasks.submitted", TaskSetSubmitted, ("api",), "task set", 1, 7 * DAY_MS)
RUN_COMMANDS = Topic("run.commands", RunCommand, ("api", "rollout-orchestrator"), "run", 4, 7 * DAY_MS)
INFERENCE_REQUESTS = Topic(
    "inference.requests", GenerateTurn, ("rollout-orchestrator",), "episode", 16, DAY_MS
)
INFERENCE_RESULTS = Topic("inference.results", TurnGenerated, ("inference",), "episode", 8, DAY_MS)
SANDBOX_COMMANDS = Topic(
    "sandbox.commands",
    SandboxCommand,
    ("rollout-orchestrator", "reward-grader"),
    "explicit partition = placement",
    32,
    DAY_MS,
)
SANDBOX_RESULTS = Topic("sandbox.results", SandboxResult, ("sandbox-executor",), "reply key", 8, DAY_MS)
SANDBOX_RESULTS_GRADER = Topic(
    "sandbox.results.reward-grader", SandboxResult, ("sandbox-executor",), "reply key", 8, DAY_MS
)
GRADING_REQUESTS = Topic("grading.requests", GradeEpisode, ("rollout-orchestrator",), "episode", 8, DAY_MS)
GRADING_RESULTS = Topic("grading.results", EpisodeGraded, ("reward-grader",), "episode", 8, DAY_MS)
TRAJECTORIES = Topic("trajectories", TrajectoryGroup, ("rollout-orchestrator",), "run", 4, 7 * DAY_MS)
TRAINING_STEPS = Topic("training.steps", TrainingStep, ("learner",), "run", 4, 7 * DAY_MS)
POLICY_PUBLISHED = Topic(
    "policy.published", PolicyPublished, ("learner",), "run", 4, 7 * DAY_MS, compacted=True
)
EXECUTOR_HEARTBEATS = Topic(
    "executor.heartbeats", ExecutorHeartbeat, ("sandbox-executor",), "executor", 1, HOUR_MS
)
EPISODE_EVENTS = Topic("episode.events", EpisodeEvent, ("rollout-orchestrator",), "episode", 8, 7 * DAY_MS)

TOPICS: dict[str, Topic] = {
    topic.name: topic
    for topic in (
        TASKS_SUBMITTED,
        RUN_COMMANDS,
        INFERENCE_REQUESTS,
        INFERENCE_RESULTS,
        SANDBOX_COMMANDS,
        SANDBOX_RESULTS,
        SANDBOX_RESULTS_GRADER,
        GRADING_REQUESTS,
        GRADING_RESULTS,
        TRAJECTORIES,
        TRAINING_STEPS,
        POLICY_PUBLISHED,
        EXECUTOR_HEARTBEATS,
        EPISODE_EVENTS,
    )
}


def dlq_of(topic: Topic) -> Topic:
    """The dead-letter topic of `topic`: one partition, a month of retention."""
    return Topic(topic.dlq, DeadLetter, topic.owner, f"as {topic.name}", 1, 30 * DAY_MS)
