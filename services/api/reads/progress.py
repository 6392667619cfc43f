"""A run's progress: how far, how good, how fast, how long still."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncSession

from sandpiper.runs import RunDocument
from sandpiper.store.db.models import Run, TrainingStepRow
from services.api.reads import runs, tasksets
from services.api.schemas.runs import (
    TERMINAL,
    EpisodeCounts,
    PolicyView,
    Progress,
    RunDetail,
    RunSummary,
    StepView,
)

STEPS_SHOWN = 20
POLICIES_SHOWN = 5


async def detail(session: AsyncSession, run: Run, now: float) -> RunDetail:
    """Everything that the page of one run shows."""
    counts = await runs.counts(session, run.id)
    steps = await runs.newest_steps(session, run.id, STEPS_SHOWN)
    policies = await runs.newest_policies(session, runs.policy_owner(run), POLICIES_SHOWN)
    return RunDetail(
        **RunSummary.fields_of(run),
        document=run.document,
        episodes=counts,
        progress=await _progress(session, run, counts, steps, now),
        recent_steps=[StepView.of(step) for step in steps],
        policies=[PolicyView.model_validate(policy) for policy in policies],
        trace_id=trace_id_of(run.trace_parent),
    )


def trace_id_of(traceparent: str | None) -> str | None:
    """The trace id within a W3C traceparent."""
    parts = (traceparent or "").split("-")
    return parts[1] if len(parts) == 4 else None


async def _progress(
    session: AsyncSession, run: Run, counts: EpisodeCounts, steps: Sequence[TrainingStepRow], now: float
) -> Progress:
    document = RunDocument.model_validate(run.document)
    overall = await runs.scores(session, run.id)
    recent = await runs.scores(session, run.id, runs.RECENT_EPISODES)
    mean, largest = await runs.staleness(session, steps[-1]) if steps else (None, None)
    expected = await _expected(session, run, document)
    elapsed = max(0.0, (run.finished_at or now) - run.started_at) if run.started_at else 0.0
    tokens = await runs.output_tokens(session, run.id)
    return Progress(
        done=fraction_done(run, document, counts, expected, elapsed),
        pass_rate=overall.pass_rate,
        mean_reward=overall.reward,
        recent_pass_rate=recent.pass_rate,
        recent_reward=recent.reward,
        recent_output_tokens=recent.output_tokens,
        tokens_per_s=await _rate(session, run, tokens, elapsed, now),
        output_tokens=tokens,
        staleness_mean=mean,
        staleness_max=largest,
        expected_episodes=expected,
        elapsed_s=elapsed,
        remaining_s=remaining(run, document, counts, steps, expected, elapsed),
    )


async def _expected(session: AsyncSession, run: Run, document: RunDocument) -> int | None:
    if document.mode != "eval":
        return None
    tasks = await tasksets.selection_size(session, run.task_set_id, document.tasks)
    return tasks * document.samples_per_task


async def _rate(session: AsyncSession, run: Run, tokens: int, elapsed: float, now: float) -> float:
    if run.state in TERMINAL:
        return tokens / elapsed if elapsed else 0.0
    window = min(runs.RATE_WINDOW_S, max(elapsed, 1.0))
    return await runs.recent_tokens(session, run.id, now - window) / window


def finished(counts: EpisodeCounts) -> int:
    """Episodes that will not change any more, as far as an evaluation cares."""
    return counts.total - counts.in_flight


def fraction_done(
    run: Run, document: RunDocument, counts: EpisodeCounts, expected: int | None, elapsed: float
) -> float:
    """Share of the bound that is nearest to being reached."""
    if run.state == "succeeded":
        return 1.0
    budget = document.budget
    shares = [0.0]
    if document.mode == "train" and budget.steps:
        shares.append(run.step / budget.steps)
    if expected:
        shares.append(finished(counts) / expected)
    if budget.wall_s:
        shares.append(elapsed / budget.wall_s)
    if budget.episodes:
        shares.append(finished(counts) / budget.episodes)
    return min(1.0, max(shares))


def remaining(
    run: Run,
    document: RunDocument,
    counts: EpisodeCounts,
    steps: Sequence[TrainingStepRow],
    expected: int | None,
    elapsed: float,
) -> float | None:
    """Seconds left at the present pace, cut by the wall budget; None when it cannot be told."""
    if run.state in TERMINAL:
        return 0.0
    guesses = []
    if document.mode == "train" and steps and run.started_at:
        newest = steps[-6:]
        since = newest[0].recorded_at if len(newest) > 1 else run.started_at
        pace = (newest[-1].recorded_at - since) / max(1, newest[-1].step - newest[0].step)
        guesses.append(pace * max(0, document.budget.steps - run.step))
    done = finished(counts)
    if expected and done:
        guesses.append(elapsed / done * max(0, expected - done))
    if document.budget.wall_s and run.started_at:
        guesses.append(document.budget.wall_s - elapsed)
    return max(0.0, min(guesses)) if guesses else None
