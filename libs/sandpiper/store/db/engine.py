"""Async engine and sessions for Postgres."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

Sessions = async_sessionmaker[AsyncSession]


def make_engine(url: str, pool_size: int = 5, statement_timeout_s: float = 30.0) -> AsyncEngine:
    """An engine for `postgresql+asyncpg://…`. Nothing connects before first use.

    Every statement is bounded by `statement_timeout_s`; a lost connection is noticed before it is used.
    """
    return create_async_engine(
        url,
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_pre_ping=True,
        pool_timeout=statement_timeout_s,
        connect_args={
            "timeout": 10,
            "command_timeout": statement_timeout_s,
            "server_settings": {"application_name": "sandpiper"},
        },
    )


def make_sessions(engine: AsyncEngine) -> Sessions:
    """Session factory; objects stay readable after commit."""
    return async_sessionmaker(engine, expire_on_commit=False)
