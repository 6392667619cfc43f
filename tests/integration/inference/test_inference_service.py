"""The inference service as a process: requests in, results out, over the embedded broker and object store."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sandpiper.bus.consumer import Consumer
from sandpiper.bus.message import Outgoing, Received
from sandpiper.bus.producer import Producer
from sandpiper.ids import new_id
from sandpiper.store.objects import ObjectStore
from sandpiper.topics import INFERENCE_REQUESTS, INFERENCE_RESULTS, POLICY_PUBLISHED, dlq_of
from sandpiper.v1.common_pb2 import Blob, EpisodeRef, PolicyRef
from sandpiper.v1.inference_pb2 import ChatMessage, GenerateTurn, Sampling, TurnGenerated, TurnTokens
from sandpiper.v1.training_pb2 import PolicyPublished
from services.inference.policies.registry import Published
from tests.stack import RunningStack, start_stack
from tests.unit.inference.memory_objects import publish, true_probe
from tests.unit.inference.tiny_model import make_tiny, recomputed, reference

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATIENCE_S = 120.0


@dataclass
class Client:
    """Publishes policies, sends requests, and sees all that comes back."""

    stack: RunningStack
    producer: Producer
    objects: ObjectStore
    folders: dict[str, Path]
    results: list[TurnGenerated] = field(default_factory=list)
    dead: list[Any] = field(default_factory=list)

    async def publish(self, name: str, version: int, run: str, announce: bool = True) -> Published:
        """A policy with a true probe, in the store and on the topic."""
        published = await publish(self.objects, self.folders[name], version, run)
        if announce:
            await self.announce(published)
        return published

    async def announce(self, published: Published) -> None:
        message = PolicyPublished(
            run_id=published.run_id, version=published.version, manifest=published.blob()
        )
        await self.producer.send(Outgoing(POLICY_PUBLISHED, message, key=published.run_id))

    async def send(self, request: GenerateTurn, deadline: float | None = None) -> GenerateTurn:
        key = request.ref.episode_id
        await self.producer.send(Outgoing(INFERENCE_REQUESTS, request, key=key, deadline=deadline))
        return request

    async def results_of(self, request: GenerateTurn, count: int = 1) -> list[TurnGenerated]:
        def found() -> list[TurnGenerated]:
            return [r for r in self.results if r.request_id == request.request_id]

        async with asyncio.timeout(PATIENCE_S):
            while len(found()) < count:
                await asyncio.sleep(0.02)
        return found()

    async def ask(self, request: GenerateTurn, deadline: float | None = None) -> TurnGenerated:
        return (await self.results_of(await self.send(request, deadline)))[0]

    async def tokens(self, result: TurnGenerated) -> TurnTokens:
        return TurnTokens.FromString(await self.objects.get(result.tokens))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    """One inference process with the torch engine, a broker and an object store; and a client."""
    base = tmp_path_factory.mktemp("inference")
    folders = {name: make_tiny(base / name, seed) for seed, name in enumerate(["a", "b"])}
    stack = await asyncio.to_thread(
        start_stack,
        base / "stack",
        replicas={"inference": 1},
        engine="torch",
        env={"SANDPIPER_TORCH__THREADS": "1", "SANDPIPER_TORCH__DTYPE": "float32"},
    )
    async with contextlib.AsyncExitStack() as closing:
        closing.push_async_callback(asyncio.to_thread, stack.stop)
        objects = ObjectStore(stack.objects)
        closing.push_async_callback(objects.close)
        await objects.start()
        producer = Producer(stack.bus, objects)
        closing.push_async_callback(producer.stop)
        await producer.start()
        client = Client(stack, producer, objects, folders)

        async def result(received: Received[Any]) -> None:
            client.results.append(received.message)

        async def dead(received: Received[Any]) -> None:
            client.dead.append(received.message)

        handlers = {INFERENCE_RESULTS: result, dlq_of(INFERENCE_REQUESTS): dead}
        consumer = Consumer(stack.bus, None, handlers, producer, objects, broadcast=True, from_beginning=True)
        running = asyncio.create_task(consumer.run())
        closing.push_async_callback(consumer.stop)
        yield client
        assert not running.done()


def request(policy: Published, episode: str, turn: int = 0, **changes: Any) -> GenerateTurn:
    """A request of a fresh id."""
    sampling: dict[str, Any] = {"temperature": 1, "max_new_tokens": 10, "seed": turn, "context_tokens": 400}
    sampling |= changes.pop("sampling", {})
    return GenerateTurn(
        ref=EpisodeRef(run_id=policy.run_id, episode_id=episode, attempt=1, turn=turn),
        request_id=new_id("gen"),
        policy=PolicyRef(
            run_id=policy.run_id,
            version=policy.version,
            pinned=changes.pop("pinned", False),
            manifest=policy.blob(),
        ),
        messages=[ChatMessage(role="user", content=f"message {turn}")],
        sampling=Sampling(**sampling),
        **changes,
    )


async def test_many_episodes_of_three_turns(client: Client) -> None:
    policy = await client.publish("a", 0, "run-many")
    model = await asyncio.to_thread(reference, client.folders["a"])

    async def episode(number: int) -> None:
        prior: Blob | None = None
        before: list[int] = []
        for turn in range(3):
            asked = request(policy, f"ep-{number}", turn, prior=prior, sampling={"seed": number * 10 + turn})
            result = await client.ask(asked)
            assert result.finish_reason in ("length", "stop"), result
            tokens = await client.tokens(result)
            prompt, output = list(tokens.prompt_ids), list(tokens.output_ids)
            assert prompt[: len(before)] == before
            assert list(tokens.logprobs) == pytest.approx(recomputed(model, prompt, output), abs=1e-4)
            before, prior = prompt + output, result.tokens

    await asyncio.gather(*(episode(number) for number in range(20)))
    assert client.dead == []


async def test_a_published_version_replaces_the_old_one_in_mid_generation(client: Client) -> None:
    first = await client.publish("a", 1, "run-flight")
    await client.ask(request(first, "ep-warm"))
    long = {"max_new_tokens": 350, "context_tokens": 500}
    asked = [await client.send(request(first, f"ep-{n}", sampling=long)) for n in range(4)]
    await asyncio.sleep(0.3)
    await client.publish("b", 2, "run-flight")
    results = [(await client.results_of(a))[0] for a in asked]
    assert all(r.output_tokens == 350 or r.finish_reason == "stop" for r in results)
    assert {r.version_max for r in results} <= {1, 2}
    assert max(r.version_max for r in results) == 2
    for result in results:
        tokens = await client.tokens(result)
        assert list(tokens.versions) == sorted(tokens.versions)
    pinned = await client.ask(request(first, "ep-pin", pinned=True))
    assert (pinned.version_min, pinned.version_max) == (1, 1)


async def test_a_policy_that_lies_is_refused(client: Client) -> None:
    lying = await publish(
        client.objects, client.folders["b"], 1, "run-lie", probe=true_probe(client.folders["a"])
    )
    await client.announce(lying)
    result = await client.ask(request(lying, "ep"))
    assert (result.failure.boundary, result.failure.reason) == ("inference", "probe_mismatch")


async def test_an_expired_request_is_answered_typed(client: Client) -> None:
    policy = await client.publish("a", 0, "run-late")
    result = await client.ask(request(policy, "ep"), deadline=time.time() - 1)
    assert (result.failure.boundary, result.failure.reason) == ("deadline", "generation")


async def test_the_same_request_twice_gives_the_same_tokens(client: Client) -> None:
    policy = await client.publish("a", 0, "run-twice")
    asked = request(policy, "ep")
    await client.ask(asked)
    await client.send(asked)
    first, second = await client.results_of(asked, 2)
    assert first == second


async def test_kill_9_in_mid_generation_loses_nothing(client: Client) -> None:
    policy = await client.publish("a", 0, "run-kill")
    await client.ask(request(policy, "ep-warm"))
    asked = [
        await client.send(request(policy, f"ep-{n}", sampling={"max_new_tokens": 300, "context_tokens": 500}))
        for n in range(8)
    ]
    await asyncio.sleep(0.2)
    pid = client.stack.process("inference").pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    results = [(await client.results_of(a))[0] for a in asked]
    assert all(r.output_tokens == 300 or r.finish_reason == "stop" for r in results)
    assert client.dead == []
