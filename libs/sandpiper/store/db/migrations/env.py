"""Alembic environment: async engine, one transaction, an advisory lock against parallel upgrades."""

from __future__ import annotations

import asyncio
import threading

from alembic import context
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

from sandpiper.store.db.models import Base

# Any constant: services that start together upgrade one after the other.
ADVISORY_LOCK = 0x5A4D1BE4


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=Base.metadata, compare_type=True)
    with context.begin_transaction():
        connection.execute(text(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"))
        context.run_migrations()


async def run_async(url: str) -> None:
    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(run)
            await connection.commit()
    finally:
        await engine.dispose()


def main() -> None:
    """Run in a thread of its own, so that a caller that already has an event loop can upgrade too."""
    url = context.config.get_main_option("sqlalchemy.url")
    if url is None:
        raise ValueError("sqlalchemy.url is not set")
    failure: list[BaseException] = []

    def work() -> None:
        try:
            asyncio.run(run_async(url))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, name="migrate")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]


main()
