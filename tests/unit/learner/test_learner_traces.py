"""One trace per episode up to the optimizer step: links one way, a child span the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from opentelemetry import trace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sandpiper.telemetry import tracing
from sandpiper.v1.training_pb2 import TrainingStep
from services.learner import reporting
from services.learner.buffer import Take
from tests.unit.learner.learner_kit import Bus, MemoryS3, document, put_group, running


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = tracing.make_provider("learner")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", lambda: provider.get_tracer("sandpiper"))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


async def test_step_and_episodes_find_each_other(learner_folder: Path, spans: InMemorySpanExporter) -> None:
    async with running(learner_folder, MemoryS3(), Bus()) as learner:
        await learner.create("r", document())
        groups = [await put_group(learner.objects, "r", index) for index in (0, 1)]
        groups[0].trajectories[0].trace_parent = ""  # an episode without a trace harms nothing
        await asyncio.wait_for(asyncio.gather(*(learner.deliver(group) for group in groups)), 60)
        roots = [tracing.parse_traceparent(t.trace_parent) for g in groups for t in g.trajectories][1:]
        async with asyncio.timeout(10):
            while sum(span.name == "train" for span in spans.get_finished_spans()) < 3:
                await asyncio.sleep(0.01)
    finished = spans.get_finished_spans()
    (step,) = [span for span in finished if span.name == "optimizer step"]
    assert step.attributes is not None
    assert step.attributes["step"] == 1
    linked = {(link.context.trace_id, link.context.span_id) for link in step.links}
    assert linked == {(root.trace_id, root.span_id) for root in roots if root}
    trains = [span for span in finished if span.name == "train"]
    assert {(t.context.trace_id, t.parent.span_id) for t in trains if t.parent and t.context} == linked
    assert step.context is not None
    assert {link.context.span_id for t in trains for link in t.links} == {step.context.span_id}
    assert all(t.end_time and t.start_time and t.end_time > t.start_time for t in trains)


@pytest.mark.parametrize(
    ("ratio", "staleness", "warned"), [(0.001, 0.0, False), (0.04, 0.0, True), (0.04, 1.0, False)]
)
def test_a_warning_says_when_engine_and_learner_disagree(
    ratio: float, staleness: float, warned: bool
) -> None:
    values = {"reward_mean": 0.0, "staleness_max": staleness, "engine_log_ratio_abs": ratio}
    with structlog.testing.capture_logs() as logs:
        reporting.observe(TrainingStep(run_id="r", step=3, metrics=values), Take((), (), True))
    assert [entry["event"] for entry in logs] == ["engine_and_learner_disagree"] * warned
