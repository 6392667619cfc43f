"""A run, live: a screen that redraws in a terminal, a line per change elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from sandpiper.cli.client import SandpiperClient
from sandpiper.cli.errors import ClientError
from sandpiper.cli.render import console, duration, metric_names, number, percent, state_text, table
from sandpiper.cli.transport import Json

EPISODES = 8


def watch_run(client: SandpiperClient, run_id: str, timeout_s: float | None, *, quiet: bool = False) -> Json:
    """Follow a run to its end and return it. Raises `WaitTimeout`."""
    out = console()
    if quiet:
        return client.wait_run(run_id, timeout_s=timeout_s)
    if not out.is_terminal:
        return client.wait_run(run_id, timeout_s=timeout_s, on_progress=Lines(out).show)
    with Live(console=out, auto_refresh=False) as live:

        def show(run: Json) -> None:
            live.update(screen(run, _episodes(client, run_id), _executors(client)), refresh=True)

        return client.wait_run(run_id, timeout_s=timeout_s, on_progress=show)


def _episodes(client: SandpiperClient, run_id: str) -> list[Json]:
    try:
        return list(islice(client.episodes(run_id, page=EPISODES), EPISODES))
    except ClientError:
        return []  # a detail of the screen, not worth ending it


def _executors(client: SandpiperClient) -> Json | None:
    try:
        return client.executors()
    except ClientError:
        return None


class Lines:
    """Prints a line whenever a step is done, the state changes, or a tenth more is done."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._last: tuple[object, ...] = ()

    def show(self, run: Json) -> None:
        now = (run["state"], run["step"], int(run["progress"]["done"] * 10))
        if now != self._last:
            self._last = now
            self._out.print(line(run), markup=False, soft_wrap=True)


def line(run: Json) -> str:
    """The run in one line."""
    progress, counts = run["progress"], run["episodes"]
    steps = f"step {run['step']}/{run['steps_budget']}  " if run["steps_budget"] is not None else ""
    reason = f" ({run['reason']})" if run["reason"] else ""
    return (
        f"{run['state']}{reason}  {steps}{percent(progress['done'])} done  "
        f"episodes {counts['graded']} graded, {counts['failed']} failed  "
        f"pass {percent(progress['recent_pass_rate'])}  reward {number(progress['recent_reward'])}  "
        f"{progress['tokens_per_s']:.0f} tok/s  left {duration(progress['remaining_s'])}"
    )


def screen(run: Json, episodes: Sequence[Json], executors: Json | None) -> RenderableType:
    """Everything at a glance."""
    title = Text.assemble((run["name"], "bold"), f"  {run['id']}  ", state_text(run["state"]))
    if run["reason"]:
        title.append(f"  {run['reason']}")
    bar = ProgressBar(total=1.0, completed=run["progress"]["done"], width=60)
    return Group(title, bar, _figures(run, executors), _steps(run["recent_steps"][-5:]), _newest(episodes))


def _figures(run: Json, executors: Json | None) -> Table:
    progress, counts = run["progress"], run["episodes"]
    budget = run["steps_budget"]
    sandboxes = f"{executors['sandboxes']} ({executors['running']} busy)" if executors else "–"
    staleness = f"{number(progress['staleness_mean'], 2)} (max {progress['staleness_max'] or 0})"
    figures = Table.grid(padding=(0, 3))
    figures.add_row(
        f"step {run['step']}/{budget}"
        if budget is not None
        else f"of {progress['expected_episodes']} episodes",
        f"pass rate {percent(progress['recent_pass_rate'])}",
        f"reward {number(progress['recent_reward'])}",
        f"left {duration(progress['remaining_s'])}",
    )
    figures.add_row(
        f"{counts['graded']} graded, {counts['in_flight']} in flight, {counts['failed']} failed",
        f"{progress['tokens_per_s']:.0f} tokens/s",
        f"staleness {staleness}" if run["mode"] == "train" else "",
        f"sandboxes {sandboxes}",
    )
    return figures


def _steps(steps: Sequence[Json]) -> RenderableType:
    if not steps:
        return Text("")
    names = metric_names(steps, 6)
    rows = [(s["step"], s["seconds"], *(s["metrics"].get(name) for name in names)) for s in steps]
    return table(("step", "seconds", *names), rows)


def _newest(episodes: Sequence[Json]) -> RenderableType:
    rows = [
        (
            item["id"],
            item["task_id"],
            state_text(item["state"]),
            item["turn"] + 1,
            item["reward"],
            item["verdict"] or item["reason"],
        )
        for item in episodes
    ]
    return table(("newest episodes", "task", "state", "turn", "reward", "verdict"), rows)
