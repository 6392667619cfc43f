"""Queries about runs: the row, its counts, its rates."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import case, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from sandpiper.store.db.models import Episode, PolicyVersion, Run, TrainingStepRow, Turn
from services.api.problems import not_found
from services.api.schemas.runs import EpisodeCounts

RECENT_EPISODES = 128
RATE_WINDOW_S = 60.0
IN_FLIGHT = ("queued", "generating", "executing", "grading")


@dataclass(frozen=True)
class Scores:
    """Means over graded episodes; None where there are none."""

    pass_rate: float | None
    reward: float | None
    output_tokens: float | None


async def get(session: AsyncSession, run_id: str) -> Run:
    """The run, or a 404 problem."""
    row = await session.get(Run, run_id, populate_existing=True)
    if row is None:
        raise not_found("run", run_id)
    return row


def policy_owner(run: Run) -> str:
    """Whose versions belong to the run: its own in training, those it acts with in an evaluation."""
    return run.id if run.mode == "train" else run.policy_run_id


async def counts(session: AsyncSession, run_id: str) -> EpisodeCounts:
    """Episodes by state and verdict."""
    passed = func.sum(case((Episode.passed.is_(True), 1), else_=0))
    graded = func.sum(case((Episode.reward.is_not(None), 1), else_=0))
    query = select(Episode.state, func.count(), graded, passed)
    rows = (await session.execute(query.where(Episode.run_id == run_id).group_by(Episode.state))).all()
    by_state = {state: number for state, number, _, _ in rows}
    return EpisodeCounts(
        total=sum(by_state.values()),
        by_state=by_state,
        in_flight=sum(by_state.get(state, 0) for state in IN_FLIGHT),
        graded=sum(int(row[2]) for row in rows),
        passed=sum(int(row[3]) for row in rows),
        failed=by_state.get("failed", 0),
    )


async def scores(session: AsyncSession, run_id: str, newest: int | None = None) -> Scores:
    """Means over all graded episodes, or over the newest ones."""
    graded = select(Episode.passed, Episode.reward, Episode.output_tokens)
    graded = graded.where(Episode.run_id == run_id, Episode.reward.is_not(None))
    if newest is not None:
        graded = graded.order_by(Episode.stage_at.desc()).limit(newest)
    part = graded.subquery()
    passed = case((part.c.passed.is_(True), 1.0), else_=0.0)
    query = select(func.avg(passed), func.avg(part.c.reward), func.avg(part.c.output_tokens))
    row = (await session.execute(query)).one()
    return Scores(*(None if value is None else float(value) for value in row))


async def output_tokens(session: AsyncSession, run_id: str) -> int:
    """Tokens generated in all."""
    query = select(func.sum(Episode.output_tokens)).where(Episode.run_id == run_id)
    return int(await session.scalar(query) or 0)


async def recent_tokens(session: AsyncSession, run_id: str, since: float) -> int:
    """Tokens of turns generated after `since`.

    An episode whose state began before `since` cannot have generated after it, so few rows are read.
    """
    query = (
        select(func.sum(Turn.output_tokens))
        .join(Episode, Episode.id == Turn.episode_id)
        .where(Episode.run_id == run_id, Episode.stage_at >= since, Turn.generated_at >= since)
    )
    return int(await session.scalar(query) or 0)


async def staleness(session: AsyncSession, step: TrainingStepRow) -> tuple[float | None, int | None]:
    """Mean and maximum, in versions, of the episodes that `step` trained."""
    behind = (step.policy_version - 1) - Episode.version_min
    query = select(func.avg(behind), func.max(behind)).where(
        Episode.run_id == step.run_id,
        Episode.trained_step == step.step,
        Episode.version_min.is_not(None),
    )
    mean, largest = (await session.execute(query)).one()
    return (None if mean is None else float(mean)), (None if largest is None else int(largest))


async def newest_steps(session: AsyncSession, run_id: str, limit: int) -> list[TrainingStepRow]:
    """The last steps, oldest first."""
    query = select(TrainingStepRow).where(TrainingStepRow.run_id == run_id)
    rows = await session.scalars(query.order_by(TrainingStepRow.step.desc()).limit(limit))
    return list(reversed(rows.all()))


async def steps_after(session: AsyncSession, run_id: str, step: int) -> list[TrainingStepRow]:
    """Steps after `step`, oldest first, at most 100."""
    query = select(TrainingStepRow).where(TrainingStepRow.run_id == run_id, TrainingStepRow.step > step)
    return list((await session.scalars(query.order_by(TrainingStepRow.step).limit(100))).all())


async def newest_policies(session: AsyncSession, run_id: str, limit: int) -> list[PolicyVersion]:
    """The last published versions, oldest first."""
    query = select(PolicyVersion).where(PolicyVersion.run_id == run_id)
    rows = await session.scalars(query.order_by(PolicyVersion.version.desc()).limit(limit))
    return list(reversed(rows.all()))
