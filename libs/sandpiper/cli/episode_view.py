"""One episode on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from sandpiper.cli.render import clean, duration, number, state_text, table, tail, when
from sandpiper.cli.transport import Json

TAIL_CHARACTERS = 600


def print_episode(episode: Json, out: Console, full: bool) -> None:
    """Head, turns, tests, reward."""
    head = Text.assemble((f"{episode['id']}  {episode['task_id']}  ", "bold"), state_text(episode["state"]))
    out.print(head)
    out.print(table(("", ""), [(name, value) for name, value in _facts(episode) if value is not None]))
    for attempt in episode["attempts"]:
        if attempt["state"] == "failed":
            detail = f"attempt {attempt['number']} failed at {attempt['boundary']}: {attempt['reason']}"
            out.print(Text(clean(f"{detail}  {attempt['detail'] or ''}"), style="red"))
    for turn in episode["turns"]:
        _print_turn(turn, out, full)
    if episode["tests"]:
        out.print(Rule("hidden tests"))
        rows = [
            (test["id"], state_text(test["status"]), test["kind"], test["message"], test["seconds"])
            for test in episode["tests"]
        ]
        out.print(table(("test", "status", "kind", "message", "seconds"), rows))
    if episode["reward_parts"]:
        out.print(Rule("reward"))
        parts = [(p["name"], p["value"], p["weight"], p["explanation"]) for p in episode["reward_parts"]]
        out.print(table(("part", "value", "weight", "why"), parts))


def _facts(episode: Json) -> list[tuple[str, object]]:
    took = (episode["finished_at"] or episode["stage_at"]) - episode["created_at"]
    versions = None
    if episode["version_min"] is not None:
        versions = f"{episode['version_min']}–{episode['version_max']}"
    return [
        ("run", episode["run_id"]),
        ("group", f"{episode['group_id']} #{episode['index']}"),
        ("reward", number(episode["reward"])),
        ("verdict", episode["verdict"]),
        ("reason", episode["reason"]),
        ("versions", versions),
        ("trained in step", episode["trained_step"]),
        ("output tokens", episode["output_tokens"]),
        ("created", when(episode["created_at"])),
        ("took", duration(took)),
        ("trace", episode["trace_id"]),
    ]


def _print_turn(turn: Json, out: Console, full: bool) -> None:
    out.print(Rule(f"turn {turn['number']} (attempt {turn['attempt']})"))
    size = 10**9 if full else TAIL_CHARACTERS
    for message in turn["messages"]:
        title = f"prompt: {message.get('role', '')}"
        out.print(_panel(title, tail(str(message.get("content", "")), size), "dim"))
    if turn["text"] is not None:
        title = f"answer ({turn['output_tokens']} tokens, {turn['finish_reason']})"
        out.print(_panel(title, tail(turn["text"], size), "cyan"))
    if turn["action"]:
        out.print(Text(f"action: {clean(_action(turn['action']))}"))
    if turn["outcome"]:
        code = "" if turn["exit_code"] is None else f", exit {turn['exit_code']}"
        out.print(Text.assemble("outcome: ", state_text(turn["outcome"]), code))
    if turn["observation"]:
        out.print(_panel("observation", tail(turn["observation"], size), "yellow"))
    out.print(Text(_timing(turn), style="dim"))


def _panel(title: str, text: str, style: str) -> Panel:
    return Panel(Text(clean(text)), title=Text(title), title_align="left", border_style=style)


def _action(action: Json) -> str:
    """The action without the contents of the files that it writes, which the answer shows."""
    shown = []
    for name, value in action.items():
        if isinstance(value, dict):
            shown.append(f"{name}={', '.join(value)}")
        elif value not in (None, "", []):
            shown.append(f"{name}={value}")
    return "  ".join(shown)


def _timing(turn: Json) -> str:
    parts = []
    if turn["generate_s"] is not None:
        parts.append(
            f"generated in {turn['generate_s']:.2f} s (queued {turn['generate_queued_s'] or 0:.2f} s)"
        )
    usage = turn["usage"] or {}
    if "wall_s" in usage:
        parts.append(f"ran {usage['wall_s']:.2f} s")
    if usage.get("memory_peak_bytes"):
        parts.append(f"peak {int(usage['memory_peak_bytes']) / 1e6:.0f} MB")
    if turn["executor_id"]:
        parts.append(f"on {turn['executor_id']}")
    if turn["version_max"] is not None:
        parts.append(f"version {turn['version_max']} ({turn['engine']})")
    return " · ".join(parts)
