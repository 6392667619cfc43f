"""Whole turns: a real torch engine and scheduler on an object store in memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from sandpiper.bus.errors import Reject
from sandpiper.bus.message import Headers, Outgoing, Received
from sandpiper.bus.producer import Producer
from sandpiper.clock import SystemClock
from sandpiper.store.results import ResultStore
from sandpiper.topics import INFERENCE_REQUESTS, INFERENCE_RESULTS, POLICY_PUBLISHED
from sandpiper.v1.common_pb2 import EpisodeRef, PolicyRef
from sandpiper.v1.inference_pb2 import ChatMessage, GenerateTurn, Sampling, TurnGenerated, TurnTokens
from sandpiper.v1.training_pb2 import PolicyPublished
from services.inference.engines.base import Engine
from services.inference.handlers import Handlers
from services.inference.policies.cache import PolicyCache
from services.inference.policies.loader import Loader
from services.inference.policies.registry import Published, Registry
from services.inference.policies.scheduler import Scheduler
from services.inference.turns import Turns
from tests.unit.inference.memory_objects import MemoryObjects, publish, true_probe
from tests.unit.inference.tiny_model import make_engine, recomputed, reference


class Factory:
    """Torch engines; keeps the last."""

    engine: Engine

    async def candidates(self, folder: Path) -> list[str]:
        return ["torch"]

    async def make(self, name: str) -> Engine:
        self.engine = make_engine()
        return self.engine


class RecordingProducer:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []

    async def send(self, out: Outgoing) -> None:
        out.encode()
        self.sent.append(out)


@dataclass
class Service:
    store: MemoryObjects
    handlers: Handlers
    producer: RecordingProducer
    factory: Factory
    loader: Loader

    async def ask(self, request: GenerateTurn, deadline: float | None = None) -> TurnGenerated:
        """Deliver a request; the result that was published for it."""
        headers = Headers("msg-1", deadline=deadline)
        await self.handlers.generate(Received(INFERENCE_REQUESTS, request, headers, "ep", 0, 0, 0.0))
        out = self.producer.sent[-1]
        assert (out.topic, out.key, out.causation_id) == (INFERENCE_RESULTS, "ep", "msg-1")
        return cast(TurnGenerated, out.message)

    async def announce(self, published: Published) -> None:
        message = PolicyPublished(
            run_id=published.run_id, version=published.version, manifest=published.blob()
        )
        await self.handlers.published(Received(POLICY_PUBLISHED, message, Headers("m"), "r", 0, 0, 0.0))

    async def tokens(self, result: TurnGenerated) -> TurnTokens:
        return TurnTokens.FromString(await self.store.get(result.tokens))


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    store, clock, producer, factory = MemoryObjects(), SystemClock(), RecordingProducer(), Factory()
    loader = Loader(factory)
    cache = PolicyCache(store.typed(), tmp_path / "cache", keep=2)
    scheduler = Scheduler(loader, cache, Registry(), clock, max_leases=8, switch_after_s=5)
    turns = Turns(scheduler, store.typed(), clock)
    handlers = Handlers(
        turns, scheduler, ResultStore(store.typed(), "inference"), cast(Producer, producer), clock, 60.0
    )
    task = asyncio.create_task(scheduler.run())
    yield Service(store, handlers, producer, factory, loader)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await loader.close()


def request(published: Published, turn: int = 0, pinned: bool = False, **changes: object) -> GenerateTurn:
    fields: dict[str, object] = {
        "ref": EpisodeRef(run_id="run-a", episode_id="ep", attempt=1, turn=turn),
        "request_id": f"gen-{turn}",
        "policy": PolicyRef(
            run_id=published.run_id, version=published.version, pinned=pinned, manifest=published.blob()
        ),
        "messages": [ChatMessage(role="user", content=f"message {turn}")],
        "sampling": Sampling(temperature=1, top_p=1, max_new_tokens=12, seed=turn, context_tokens=300),
    }
    return GenerateTurn(**(fields | changes))  # type: ignore[arg-type]


async def test_token_in_token_out_over_three_turns(service: Service, tiny: Path) -> None:
    policy = await publish(service.store.typed(), tiny, 2)
    model = reference(tiny)
    before: list[int] = []
    outputs: list[list[int]] = []
    prior = None
    for turn in range(3):
        asked = request(policy, turn, assistant_prefix="```python\n", prior=prior)
        result = await service.ask(asked)
        tokens = await service.tokens(result)
        prompt, output = list(tokens.prompt_ids), list(tokens.output_ids)
        assert prompt[: len(before)] == before
        assert [prompt[a:b] for a, b in zip(tokens.turn_starts, tokens.turn_ends, strict=True)] == outputs
        assert list(tokens.logprobs) == pytest.approx(recomputed(model, prompt, output), abs=1e-4)
        assert list(tokens.versions) == [2] * len(output)
        assert (result.finish_reason, result.version_min, result.version_max) == ("length", 2, 2)
        assert (result.prompt_tokens, result.output_tokens) == (len(prompt), 12)
        assert (result.engine, tokens.policy_run_id) == ("torch", "run-a")
        assert len(result.weights_sha256) == 64
        before, prior = prompt + output, result.tokens
        outputs.append(output)


async def test_a_redelivery_answers_from_the_store(service: Service, tiny: Path) -> None:
    policy = await publish(service.store.typed(), tiny, 0)
    first = await service.ask(request(policy))
    await service.loader.close()
    assert await service.ask(request(policy, sampling=Sampling())) == first
    assert len(service.producer.sent) == 2


async def test_overlapping_deliveries_generate_once(service: Service, tiny: Path) -> None:
    policy = await publish(service.store.typed(), tiny, 0)
    headers = Headers("msg-1")
    received = Received(INFERENCE_REQUESTS, request(policy), headers, "ep", 0, 0, 0.0)
    await asyncio.gather(*(service.handlers.generate(received) for _ in range(4)))
    assert len({out.message.SerializeToString(deterministic=True) for out in service.producer.sent}) == 1
    assert len(service.producer.sent) == 4


async def test_context_limit(service: Service, tiny: Path) -> None:
    policy = await publish(service.store.typed(), tiny, 7)
    size = (await service.ask(request(policy))).prompt_tokens
    for more in (0, 1, 5, 12, 40):
        asked = request(
            policy,
            request_id=f"limit-{more}",
            sampling=Sampling(temperature=1, max_new_tokens=12, context_tokens=size + more),
        )
        result = await service.ask(asked)
        assert result.output_tokens == min(more, 12)
        assert result.finish_reason == ("length" if more else "context_limit")
        tokens = await service.tokens(result)
        assert len(tokens.prompt_ids) == size
        assert (result.version_min, result.version_max) == (7, 7)


async def test_stop_strings_end_the_turn_and_stay_in_the_text(service: Service, tiny: Path) -> None:
    policy = await publish(service.store.typed(), tiny, 0)
    free = await service.ask(request(policy, sampling=Sampling(temperature=0, max_new_tokens=60)))
    stop = free.text[4:6]
    result = await service.ask(
        request(policy, request_id="s", sampling=Sampling(temperature=0, max_new_tokens=60, stop=[stop]))
    )
    assert result.finish_reason == "stop"
    assert free.text.startswith(result.text.rstrip("\ufffd"))
    assert stop in result.text
    assert result.output_tokens < free.output_tokens


async def test_a_new_version_in_mid_turn(service: Service, tiny: Path, tiny_other: Path) -> None:
    one = await publish(service.store.typed(), tiny, 1)
    await service.ask(request(one))
    long = Sampling(temperature=1, max_new_tokens=400, seed=3)
    task = asyncio.create_task(service.ask(request(one, request_id="long", sampling=long)))
    await asyncio.sleep(0.1)
    await service.announce(await publish(service.store.typed(), tiny_other, 2))
    result = await task
    assert (result.version_min, result.version_max) == (1, 2)
    tokens = await service.tokens(result)
    assert list(tokens.versions) == sorted(tokens.versions)
    pinned = await service.ask(request(one, request_id="pinned", pinned=True))
    assert (pinned.version_min, pinned.version_max) == (1, 1)


async def test_probe_mismatch_is_a_typed_failure_and_never_served(
    service: Service, tiny: Path, tiny_other: Path
) -> None:
    good = await publish(service.store.typed(), tiny, 1)
    lying = await publish(service.store.typed(), tiny_other, 2, probe=true_probe(tiny))
    await service.announce(good)
    await service.announce(lying)
    for n in range(2):
        result = await service.ask(request(lying, request_id=f"l{n}"))
        assert result.finish_reason == "failed"
        assert (result.failure.boundary, result.failure.reason) == ("inference", "probe_mismatch")
        assert not result.tokens.uri
    assert (await service.ask(request(good, request_id="g"))).version_max == 1


async def test_failures_are_typed(service: Service, tiny: Path) -> None:
    policy = await publish(service.store.typed(), tiny, 1)
    cases = {
        ("deadline", "generation"): (request(policy), time.time() - 1),
        ("inference", "bad_request"): (request(policy, turn=1), None),
        ("store", "missing"): (
            request(Published("run-a", 9, "s3://b/none", "", 0), pinned=True),
            None,
        ),
    }
    for expected, (asked, deadline) in cases.items():
        result = await service.ask(asked, deadline)
        assert (result.failure.boundary, result.failure.reason) == expected
        assert result.failure.detail
    ok = await service.ask(request(policy))
    assert ok.finish_reason == "length"  # the failed try of the same request id was not stored


async def test_the_deadline_cuts_a_generation_and_frees_the_engine(service: Service, tiny: Path) -> None:
    policy = await publish(service.store.typed(), tiny, 1)
    await service.ask(request(policy))
    long = Sampling(temperature=1, max_new_tokens=450)
    result = await service.ask(request(policy, request_id="x", sampling=long), time.time() + 0.1)
    assert (result.failure.boundary, result.failure.reason) == ("deadline", "generation")
    assert (await service.ask(request(policy, request_id="y"))).output_tokens == 12


async def test_an_engine_that_dies_under_a_turn_is_replaced(service: Service, tiny: Path) -> None:
    policy = await publish(service.store.typed(), tiny, 1)
    await service.ask(request(policy))
    first = service.factory.engine
    long = Sampling(temperature=1, max_new_tokens=300)
    task = asyncio.create_task(service.ask(request(policy, request_id="x", sampling=long)))
    await asyncio.sleep(0.05)
    await first.stop()
    assert (await task).output_tokens == 300
    assert service.factory.engine is not first


async def test_a_store_outage_is_a_typed_failure(service: Service, tiny: Path) -> None:
    policy = await publish(service.store.typed(), tiny, 1)
    await service.ask(request(policy))
    task = asyncio.create_task(
        service.ask(request(policy, request_id="x", sampling=Sampling(temperature=1, max_new_tokens=200)))
    )
    await asyncio.sleep(0.05)
    service.store.down = True
    result = await task
    assert (result.failure.boundary, result.failure.reason) == ("store", "unavailable")


async def test_messages_without_identity_are_rejected(service: Service, tiny: Path) -> None:
    with pytest.raises(Reject):
        await service.ask(GenerateTurn())
    with pytest.raises(Reject):
        await service.announce(Published("run-a", 1, "", "", 0))
