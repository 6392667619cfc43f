"""Evaluate, train, evaluate again, over the HTTP API like any user."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sandpiper.cli.client import SandpiperClient
from sandpiper.demo.stats import Interval, paired_gain, pass_rate, wilson

Json = dict[str, Any]
Say = Callable[[str], None]
PATIENCE_S = 3 * 3600.0


class DemoFailedError(Exception):
    """A run of the demo did not succeed; the message says which and why."""


@dataclass
class Measured:
    """Everything that the demo saw."""

    before: dict[str, list[bool]] = field(default_factory=dict)
    after: dict[str, list[bool]] = field(default_factory=dict)
    run: Json = field(default_factory=dict)
    steps: list[Json] = field(default_factory=list)
    episodes: int = 0
    infra_errors: int = 0
    output_tokens: int = 0
    examples: list[Json] = field(default_factory=list)
    wall_s: float = 0.0

    def gain(self) -> Interval:
        """Held-out gain with its 95 % interval."""
        return paired_gain(self.before, self.after)

    def engine(self) -> str:
        """Which engine generated."""
        turns = [turn for episode in self.examples for turn in episode["turns"]]
        return next((turn["engine"] for turn in turns if turn["engine"]), "unknown")


def run_over(client: SandpiperClient, document: Json, say: Say, watch: Callable[[Json], None]) -> Json:
    """Create a run and wait for its end; DemoFailedError unless it succeeds. Ctrl-C cancels it."""
    created = client.create_run(document)
    say(f"run {created['id']} ({document['name']})")
    try:
        done = client.wait_run(created["id"], timeout_s=PATIENCE_S, on_progress=watch)
    except KeyboardInterrupt:
        client.cancel_run(created["id"])
        raise
    if done["state"] != "succeeded":
        raise DemoFailedError(f"run {done['id']} ({document['name']}) {done['state']}: {done['reason']}")
    return done


def outcomes(client: SandpiperClient, run_id: str) -> dict[str, list[bool]]:
    """Task id → passed, of every episode that has a verdict."""
    found: dict[str, list[bool]] = defaultdict(list)
    for episode in client.episodes(run_id):
        if episode["passed"] is not None:
            found[episode["task_id"]].append(episode["passed"])
    return dict(found)


def count_failures(client: SandpiperClient, run_id: str) -> int:
    """Attempts that infrastructure failed, seen on the episodes that needed more than one or never ended."""
    return sum(episode["attempt"] - 1 + (episode["state"] == "failed") for episode in client.episodes(run_id))


def examples(client: SandpiperClient, run: Json) -> list[Json]:
    """Three trained episodes to read: an early failure, a success after feedback, a late success."""
    trained = [e for e in client.episodes(run["id"], order="oldest") if e["state"] == "trained"]
    early = [e for e in trained if not e["passed"]]
    passed = [e for e in trained if e["passed"]]
    multi = [e for e in passed if e["turn"] > 0]
    chosen = [*early[:1], *multi[-1:], *passed[-1:], *trained]
    unique = list({e["id"]: e for e in chosen}.values())[:3]
    return [client.episode(e["id"]) for e in unique]


def measure(
    client: SandpiperClient,
    training: Json,
    evaluation: Callable[[Json, str], Json],
    say: Say,
    watch: Callable[[Json], None],
) -> Measured:
    """The whole demo. `evaluation(policy, label)` makes an evaluation document."""
    began = time.monotonic()
    result = Measured()
    say("held-out tasks before training")
    first = run_over(client, evaluation(training["policy"], "before"), say, watch)
    result.before = outcomes(client, first["id"])
    say(f"pass rate before: {rate_text(result.before)}")
    result.run = run_over(client, training, say, watch)
    result.steps = list(client.steps(result.run["id"]))
    trained = {"kind": "run", "run_id": result.run["id"], "version": result.run["policy_version"]}
    say("held-out tasks after training")
    last = run_over(client, evaluation(trained, "after"), say, watch)
    result.after = outcomes(client, last["id"])
    say(f"pass rate after: {rate_text(result.after)}")
    for run in (first, result.run, last):
        result.episodes += run["episodes"]["total"]
        result.output_tokens += run["progress"]["output_tokens"]
        result.infra_errors += count_failures(client, run["id"])
    result.examples = examples(client, result.run)
    result.wall_s = time.monotonic() - began
    return result


def rate_text(found: dict[str, list[bool]]) -> str:
    """`12.5 % (30 of 240 on 60 tasks)`"""
    passed, total = sum(map(sum, found.values())), sum(map(len, found.values()))
    return f"{100 * pass_rate(found):.1f} % ({passed} of {total} episodes on {len(found)} tasks)"


def interval_of(found: dict[str, list[bool]]) -> Interval:
    """Pass rate with the Wilson interval of its episodes."""
    interval = wilson(sum(map(sum, found.values())), sum(map(len, found.values())))
    return Interval(pass_rate(found), interval.low, interval.high)


def summary(preset: str, measured: Measured) -> Json:
    """The JSON of `scripts/demo --json`."""
    gain = measured.gain()
    rewards = [step["metrics"].get("reward_mean") for step in measured.steps]
    return {
        "preset": preset,
        "steps": measured.run["step"],
        "pass_before": round(pass_rate(measured.before), 4),
        "pass_after": round(pass_rate(measured.after), 4),
        "ci_low": round(gain.low, 4),
        "ci_high": round(gain.high, 4),
        "reward_first": rewards[0] if rewards else None,
        "reward_last": rewards[-1] if rewards else None,
        "episodes": measured.episodes,
        "infra_errors": measured.infra_errors,
        "tokens_per_s": round(measured.output_tokens / measured.wall_s, 1),
        "wall_s": round(measured.wall_s, 1),
        "engine": measured.engine(),
    }
