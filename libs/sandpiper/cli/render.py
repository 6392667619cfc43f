"""How things look in a terminal. Text that a policy wrote is shown, never obeyed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

PLAIN_WIDTH = 240
TELLING = (
    "reward_mean",
    "pass_rate",
    "staleness_mean",
    "loss",
    "grad_norm",
    "entropy",
    "clip_fraction",
    "engine_k3",
    "tokens_per_s",
)
STYLES = {
    "running": "cyan",
    "waiting": "yellow",
    "paused": "yellow",
    "succeeded": "green",
    "failed": "red",
    "cancelled": "magenta",
    "trained": "green",
    "graded": "green",
    "discarded": "magenta",
    "passed": "green",
    "ok": "green",
    "error": "red",
}


def console(plain_width: int = PLAIN_WIDTH) -> Console:
    """The terminal, or a plain page of that width where output goes into a file or pipe."""
    width = None if sys.stdout.isatty() else plain_width
    return Console(width=width, highlight=False)


def print_json(data: Any) -> None:
    """One JSON document on stdout."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def clean(text: str | None) -> str:
    """Control characters made visible, so that no output can move the cursor or fake a screen."""
    shown = []
    for character in text or "":
        code = ord(character)
        if character in "\n\t" or (code >= 32 and not 127 <= code < 160):
            shown.append(character)
        else:
            shown.append(chr(0x2400 + code) if code < 32 else "\ufffd")
    return "".join(shown)


def state_text(state: str | None) -> Text:
    """A state in its colour."""
    return Text(state or "", style=STYLES.get(state or "", ""))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A plain table; cells are text, never markup."""
    made = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(clean(_cell(cell))) for cell in row))
    return made


def metric_names(steps: Iterable[Mapping[str, Any]], most: int) -> list[str]:
    """Which metrics of optimizer steps to show: those that say most first, then the others."""
    present = {name for step in steps for name in step["metrics"]}
    return [*(name for name in TELLING if name in present), *sorted(present - set(TELLING))][:most]


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)


def number(value: float | None, digits: int = 3) -> str:
    """A number, or a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    """A share as a percentage, or a dash."""
    return "–" if value is None else f"{value * 100:.1f} %"


def duration(seconds: float | None) -> str:
    """`1:02:03`, `4:05`, or a dash."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def when(at: float | None) -> str:
    """A time of the local clock."""
    return "–" if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def tail(text: str, characters: int) -> str:
    """The end of a text; the cut is marked."""
    if len(text) <= characters:
        return text
    return f"… [{len(text) - characters} characters above]\n{text[-characters:]}"
