"""The whole loop on the embedded stack, seen from outside."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import zstandard

from sandpiper.v1.events_pb2 import EpisodeEvent
from tests.e2e.otlp import SeenSpan
from tests.e2e.support import STEPS, Trained, tiny_document

OVER = {"trained", "discarded", "failed"}
SERVICES = {"api", "rollout-orchestrator", "inference", "sandbox-executor", "reward-grader", "learner"}


def rows(trained: Trained, query: str) -> list[tuple[Any, ...]]:
    """Rows straight from Postgres."""

    async def fetch() -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(trained.stack.database_url.replace("+asyncpg", ""))
        try:
            return [tuple(row) for row in await connection.fetch(query, trained.run["id"])]
        finally:
            await connection.close()

    return asyncio.run(fetch())


def test_the_run_succeeds_with_its_steps(trained: Trained) -> None:
    assert trained.run["state"] == "succeeded", trained.run["reason"]
    assert trained.run["step"] == STEPS
    assert [step["step"] for step in trained.client.steps(trained.run["id"])] == list(range(1, STEPS + 1))


def test_engine_and_learner_have_the_same_policy_after_every_step(trained: Trained) -> None:
    document = tiny_document(trained.run["task_set_id"])
    document["algorithm"] |= {"max_staleness": 0, "learning_rate": 3e-4}
    run = trained.client.wait_run(trained.client.create_run(document)["id"], timeout_s=180)
    steps = list(trained.client.steps(run["id"]))
    assert len(steps) == STEPS
    assert {step["metrics"]["staleness_max"] for step in steps} == {0.0}
    assert max(step["metrics"]["engine_log_ratio_abs"] for step in steps) < 1e-3


def test_every_episode_is_terminal_exactly_once(trained: Trained) -> None:
    episodes = list(trained.client.episodes(trained.run["id"]))
    assert episodes
    assert {episode["state"] for episode in episodes} <= OVER
    events = rows(
        trained,
        "SELECT key, payload, topic FROM outbox WHERE topic = 'episode.events' AND $1::text IS NOT NULL",
    )

    ends = Counter(key for key, payload, _ in events if EpisodeEvent.FromString(payload).state in OVER)
    assert all(ends[episode["id"]] == 1 for episode in episodes)


def test_every_trained_trajectory_is_in_exactly_one_step(trained: Trained) -> None:
    trained_ids = [e["id"] for e in trained.client.episodes(trained.run["id"], state="trained")]
    recorded = rows(trained, "SELECT episode_id, step FROM step_episodes WHERE run_id = $1")
    assert sorted(trained_ids) == sorted(episode_id for episode_id, _ in recorded)
    per_step = Counter(step for _, step in recorded)
    assert set(per_step) == set(range(1, STEPS + 1))
    assert all(12 <= count <= 16 for count in per_step.values())


def test_no_infrastructure_failure_and_no_retry(trained: Trained) -> None:
    episodes = list(trained.client.episodes(trained.run["id"]))
    assert [e for e in episodes if e["attempt"] > 1 or e["state"] == "failed"] == []


def test_a_trajectory_is_the_exact_tokens_with_masks_and_versions(trained: Trained) -> None:
    episode = next(trained.client.episodes(trained.run["id"], state="trained"))
    found = trained.client.trajectory(episode["id"])
    lengths = {len(found[name]) for name in ("token_ids", "mask", "logprobs", "versions")}
    assert len(lengths) == 1
    assert sum(found["mask"]) == episode["output_tokens"]
    for masked, logprob, version in zip(found["mask"], found["logprobs"], found["versions"], strict=True):
        assert (logprob is not None and logprob <= 0 and version is not None) == bool(masked)


def test_a_snapshot_can_be_restored(trained: Trained) -> None:
    episode = next(trained.client.episodes(trained.run["id"], state="trained"))
    data = zstandard.ZstdDecompressor().decompressobj().decompress(trained.client.snapshot(episode["id"]))
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        names = {Path(member.name).name for member in archive if member.isfile()}
    assert "answer.txt" in names


def test_an_exported_policy_loads_in_transformers(trained: Trained, tmp_path: Path) -> None:
    folder = trained.client.export_policy(trained.run["id"], tmp_path / "policy")
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    model = AutoModelForCausalLM.from_pretrained(folder)
    tokens = AutoTokenizer.from_pretrained(folder)("abc", return_tensors="pt")
    assert model(**tokens).logits.shape[-1] == model.config.vocab_size


def test_policies_differ_and_each_is_published_once(trained: Trained) -> None:
    policies = list(trained.client.policies(trained.run["id"]))
    assert [policy["version"] for policy in policies] == list(range(STEPS + 1))
    assert len({policy["weights_sha256"] for policy in policies}) == STEPS + 1


@pytest.fixture(scope="module")
def trace(trained: Trained) -> list[SeenSpan]:
    """The trace of one trained episode, once its spans have arrived."""
    episode = next(trained.client.episodes(trained.run["id"], state="trained"))
    spans: list[SeenSpan] = []
    for _ in range(60):
        spans = trained.traces.traces().get(episode["trace_id"], [])
        if {span.service for span in spans} >= SERVICES and any(not span.parent for span in spans):
            break
        time.sleep(0.5)
    return spans


def test_a_trace_has_all_six_services_and_no_orphans(trace: list[SeenSpan]) -> None:
    assert {span.service for span in trace} == SERVICES
    ids = {span.span_id for span in trace}
    roots = [span for span in trace if not span.parent]
    assert [root.name for root in roots] == ["episode"]
    assert [span for span in trace if span.parent and span.parent not in ids] == []


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        ("rollout-orchestrator", "inference"),
        ("inference", "rollout-orchestrator"),
        ("rollout-orchestrator", "sandbox-executor"),
        ("sandbox-executor", "rollout-orchestrator"),
        ("rollout-orchestrator", "reward-grader"),
        ("reward-grader", "sandbox-executor"),
        ("sandbox-executor", "reward-grader"),
        ("reward-grader", "rollout-orchestrator"),
        ("rollout-orchestrator", "learner"),
        ("rollout-orchestrator", "api"),
    ],
)
def test_parent_and_child_cross_services(trace: list[SeenSpan], parent: str, child: str) -> None:
    by_id = {span.span_id: span for span in trace}
    edges = {(by_id[span.parent].service, span.service) for span in trace if span.parent in by_id}
    assert (parent, child) in edges


def test_the_step_span_links_to_each_episode_that_it_trained(trained: Trained) -> None:
    wanted = {e["trace_id"] for e in trained.client.episodes(trained.run["id"], trained_step=1)}
    linked = [
        {trace for trace, _ in span.links} for span in trained.traces.spans if span.service == "learner"
    ]
    assert wanted
    assert any(wanted <= links for links in linked)


def test_the_root_links_to_the_request_that_made_the_run(trained: Trained, trace: list[SeenSpan]) -> None:
    root = next(span for span in trace if not span.parent)
    requests = {s.trace_id for s in trained.traces.spans if s.service == "api" and "POST /v1/runs" in s.name}
    assert {linked for linked, _ in root.links} & requests


def test_metrics_are_served(trained: Trained) -> None:
    import httpx  # noqa: PLC0415

    text = httpx.get(f"{trained.stack.api_url}/metrics").text
    assert "sandpiper_messages_consumed" in text


def test_the_run_document_is_kept(trained: Trained) -> None:
    assert json.loads(json.dumps(trained.run["document"]))["algorithm"]["group_size"] == 4
