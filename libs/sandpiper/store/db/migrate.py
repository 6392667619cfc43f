"""Bring a database to the newest schema (Alembic, run as a library: no ini file)."""

from __future__ import annotations

import argparse
from pathlib import Path

from alembic import command
from alembic.config import Config


def alembic_config(url: str) -> Config:
    """Alembic settings for `url` (`postgresql+asyncpg://…`)."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    return config


def upgrade(url: str, revision: str = "head") -> None:
    """Upgrade the schema to `revision`. Safe to call at every start and from several processes."""
    command.upgrade(alembic_config(url), revision)


def main() -> None:
    parser = argparse.ArgumentParser(description="Upgrade the Sandpiper database schema.")
    parser.add_argument("url", help="postgresql+asyncpg://user:password@host/database")
    parser.add_argument("--revision", default="head")
    arguments = parser.parse_args()
    upgrade(arguments.url, arguments.revision)


if __name__ == "__main__":
    main()
