"""Queries about episodes."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from sandpiper.store.db.models import Attempt, Episode, Turn
from services.api.problems import ProblemError, not_found
from services.api.schemas.common import Json
from services.api.schemas.episodes import AttemptView, EpisodeDetail, EpisodeSummary, TurnView


async def get(session: AsyncSession, episode_id: str) -> Episode:
    """The episode, or a 404 problem."""
    row = await session.get(Episode, episode_id)
    if row is None:
        raise not_found("episode", episode_id)
    return row


async def detail(session: AsyncSession, episode_id: str) -> EpisodeDetail:
    """The episode with its attempts and turns."""
    row = await get(session, episode_id)
    attempts = await session.scalars(
        select(Attempt).where(Attempt.episode_id == episode_id).order_by(Attempt.number)
    )
    turns = await session.scalars(
        select(Turn).where(Turn.episode_id == episode_id).order_by(Turn.attempt, Turn.number)
    )
    return EpisodeDetail(
        **EpisodeSummary.model_validate(row).model_dump(),
        seed=row.seed,
        grader_version=row.grader_version,
        reward_parts=row.reward_parts,
        tests=row.tests,
        has_evidence=bool(row.evidence),
        deadline=row.deadline,
        attempts=[AttemptView.model_validate(attempt) for attempt in attempts],
        turns=[TurnView.of(turn) for turn in turns],
    )


async def turn(session: AsyncSession, episode_id: str, attempt: int | None, number: int) -> Turn:
    """One turn, of the newest attempt unless named. 404 problem when there is none."""
    episode = await get(session, episode_id)
    which = attempt or episode.attempt
    row = await session.get(Turn, (episode_id, which, number))
    if row is None:
        detail = f"episode {episode_id} has no turn {number} in attempt {which}"
        raise ProblemError(404, "not-found", detail)
    return row


async def generated(session: AsyncSession, episode_id: str, attempt: int) -> list[tuple[int, Json]]:
    """Number and TurnTokens blob of every generated turn of an attempt, in order."""
    query = select(Turn.number, Turn.tokens).where(
        Turn.episode_id == episode_id, Turn.attempt == attempt, Turn.tokens.is_not(None)
    )
    rows = (await session.execute(query.order_by(Turn.number))).all()
    return [(number, blob) for number, blob in rows if blob]


async def snapshot(session: AsyncSession, episode_id: str, turn_number: int | None) -> Json:
    """Blob of the newest snapshot, or of that after a turn. 404 problem when there is none."""
    row = await get(session, episode_id)
    found = row.snapshot
    if turn_number is not None:
        found = (await turn(session, episode_id, None, turn_number)).snapshot
    if not found:
        raise ProblemError(404, "not-found", f"episode {episode_id} has no snapshot there")
    return found
