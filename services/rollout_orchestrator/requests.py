"""Builds the messages that move an episode: generate a turn, run an action, grade."""

from __future__ import annotations

from sandpiper.execution import execution_limits
from sandpiper.ids import derived_id
from sandpiper.runs import RunDocument
from sandpiper.store.blobs import blob_from_json
from sandpiper.store.db.models import Episode, PolicyVersion, Run, TaskRow, Turn
from sandpiper.topics import SANDBOX_RESULTS
from sandpiper.v1 import common_pb2, grading_pb2, inference_pb2, sandbox_pb2

from .harness import Action
from .harness.protocol import Message
from .taskspec import TaskSpec

Request = inference_pb2.GenerateTurn | sandbox_pb2.SandboxCommand | grading_pb2.GradeEpisode


def episode_ref(episode: Episode) -> common_pb2.EpisodeRef:
    """The fence that every request and result carries."""
    return common_pb2.EpisodeRef(
        run_id=episode.run_id,
        group_id=episode.group_id,
        episode_id=episode.id,
        attempt=episode.attempt,
        turn=episode.turn,
    )


def turn_limit(document: RunDocument, task: TaskSpec) -> int:
    """Turns per episode: the task's limit, lowered by the run's."""
    return min(task.limits.max_turns, document.limits.max_turns or task.limits.max_turns)


def generate_turn(
    document: RunDocument,
    run: Run,
    policy: PolicyVersion,
    episode: Episode,
    task: TaskSpec,
    messages: list[Message],
) -> inference_pb2.GenerateTurn:
    """The request for the current turn; `episode.tokens` is the exact prefix."""
    new_tokens = min(task.limits.max_new_tokens, document.limits.max_new_tokens or task.limits.max_new_tokens)
    return inference_pb2.GenerateTurn(
        ref=episode_ref(episode),
        request_id=derived_id("gen", episode.id, episode.attempt, episode.turn),
        policy=common_pb2.PolicyRef(
            run_id=run.policy_run_id,
            version=policy.version,
            pinned=run.mode == "eval",
            manifest=blob_from_json(policy.manifest),
        ),
        prior=blob_from_json(episode.tokens),
        messages=[inference_pb2.ChatMessage(role=m["role"], content=m["content"]) for m in messages],
        assistant_prefix=task.reply_prefix,
        sampling=inference_pb2.Sampling(
            temperature=document.sampling.temperature,
            top_p=document.sampling.top_p,
            max_new_tokens=new_tokens,
            seed=(episode.seed + episode.turn * 7919) % 2**31,
            context_tokens=task.limits.context_tokens,
            stop=[*task.stop, *document.sampling.stop],
        ),
    )


def run_action(
    episode: Episode, task: TaskSpec, action: Action, last_turn: bool
) -> sandbox_pb2.SandboxCommand:
    """Write the action's files over the newest snapshot, run it, take a snapshot.

    Visible tests are written again each time, so that what the policy did to them does not count.
    """
    files = dict(action.files) | dict(task.visible.files)
    if episode.snapshot is None:
        files = dict(task.workspace) | files
    return sandbox_pb2.SandboxCommand(
        command_id=derived_id("run", episode.id, episode.attempt, episode.turn),
        ref=episode_ref(episode),
        reply_topic=SANDBOX_RESULTS.name,
        reply_key=episode.id,
        sandbox_id=episode.id,
        base=blob_from_json(episode.snapshot),
        files=[
            sandbox_pb2.FileWrite(path=path, content=text.encode()) for path, text in sorted(files.items())
        ],
        argv=list(action.argv),
        limits=execution_limits(task.limits),
        snapshot=True,
        destroy=last_turn,
        language=task.language,
    )


def grade_episode(episode: Episode, task: TaskRow, deadline: float) -> grading_pb2.GradeEpisode:
    """Ask for a verdict on the newest snapshot."""
    return grading_pb2.GradeEpisode(
        ref=episode_ref(episode),
        request_id=derived_id("grade", episode.id, episode.attempt),
        task=blob_from_json(task.blob),
        snapshot=blob_from_json(episode.snapshot),
        deadline=deadline,
    )


def new_turn(episode: Episode, messages: list[Message], now: float) -> Turn:
    """The empty record of the current turn of the current attempt."""
    return Turn(
        episode_id=episode.id,
        attempt=episode.attempt,
        number=episode.turn,
        messages=list(messages),
        requested_at=now,
    )
