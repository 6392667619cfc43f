"""Reading and following the log files of a stack."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandpiper.embedded.process import tail

POLL_S = 0.2
WINDOW = 1 << 20


def files(folder: Path) -> dict[str, Path]:
    """Process name -> log file, sorted by name."""
    return {path.name.removesuffix(".log"): path for path in sorted(folder.glob("*.log"))}


@dataclass
class Follower:
    """Reads what is appended to one file, also after it was truncated."""

    path: Path
    position: int = 0
    rest: str = ""

    def read(self) -> list[str]:
        """Whole lines since the last call."""
        size = self.path.stat().st_size
        if size < self.position:
            self.position, self.rest = 0, ""
        with self.path.open("rb") as file:
            file.seek(self.position)
            text = self.rest + file.read(WINDOW).decode(errors="replace")
            self.position = file.tell()
        *whole, self.rest = text.split("\n")
        return whole


def show(logs: Mapping[str, Path], lines: int, follow: bool, echo: Callable[[str], object]) -> None:
    """The last lines of each log, then with `follow` whatever is added, until interrupted."""
    width = max(map(len, logs), default=0)
    prefix = {name: f"{name:<{width}} | " if len(logs) > 1 else "" for name in logs}
    followers = {name: Follower(path, path.stat().st_size) for name, path in logs.items()}
    for name, path in logs.items():
        for line in tail(path, lines, WINDOW).splitlines() if lines else ():
            echo(prefix[name] + line)
    while follow:
        for name, follower in followers.items():
            for line in follower.read():
                echo(prefix[name] + line)
        time.sleep(POLL_S)
