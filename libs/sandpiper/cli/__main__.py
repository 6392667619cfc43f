"""`python -m sandpiper.cli`"""

from __future__ import annotations

from sandpiper.cli.main import app

if __name__ == "__main__":
    app()
