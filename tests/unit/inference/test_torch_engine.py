"""The torch engine against transformers itself."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch

from services.inference.engines.base import Generation, Sampling
from services.inference.engines.torch_engine import TorchEngine
from services.inference.failures import BadRequest, EngineDied, PolicyRefused
from services.inference.prompts.stopping import Stops
from tests.unit.inference.tiny_model import (
    CONTEXT,
    Counting,
    full_logprobs,
    make_engine,
    make_tiny,
    never_stop,
    recomputed,
    reference,
)

PROMPTS = [[5, 9, 200, 31], [7] * 40, [100, 101, 102], list(range(60, 90)), [1], [2, 3], [250, 4, 4, 4, 9]]


async def generate(engine: TorchEngine, prompt: list[int], **sampling: Any) -> Generation:
    return await engine.generate(prompt, Sampling(**{"max_new_tokens": 12, **sampling}), never_stop())


async def test_greedy_is_what_transformers_generates(engine: TorchEngine, tiny: Path) -> None:
    model = reference(tiny)
    results = await asyncio.gather(*(generate(engine, p, temperature=0) for p in PROMPTS))
    for prompt, result in zip(PROMPTS, results, strict=True):
        expected = model.generate(
            torch.tensor([prompt]), max_new_tokens=12, do_sample=False, eos_token_id=None, pad_token_id=0
        )
        assert result.output_ids == expected[0, len(prompt) :].tolist()
        assert result.finish_reason == "length"
        assert result.logprobs == pytest.approx(recomputed(model, prompt, result.output_ids), abs=1e-4)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
async def test_logprobs_are_those_that_a_learner_recomputes(
    engine: TorchEngine, tiny: Path, temperature: float
) -> None:
    model = reference(tiny)
    results = await asyncio.gather(
        *(generate(engine, p, temperature=temperature, seed=n) for n, p in enumerate(PROMPTS))
    )
    for prompt, result in zip(PROMPTS, results, strict=True):
        expected = recomputed(model, prompt, result.output_ids, temperature)
        assert result.logprobs == pytest.approx(expected, abs=1e-4)
        assert set(result.versions) == {3}


async def test_prompts_that_begin_alike_are_read_from_where_they_differ(
    engine: TorchEngine, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group of episodes, then their next turns, then another task under the same system message."""
    computed: list[int] = []
    prefill = engine._model.prefill

    def counting(ids: list[int], row: int, start: int = 0) -> torch.Tensor:
        computed.append(len(ids) - start)
        return prefill(ids, row, start)

    monkeypatch.setattr(engine._model, "prefill", counting)
    model, first = reference(tiny), list(range(10, 60))
    turns = await asyncio.gather(*(generate(engine, first, seed=n) for n in range(5)))
    nexts = [[*first, *turn.output_ids, 7, n] for n, turn in enumerate(turns)]
    prompts = [*nexts, [*first[:30], 1, 2, 3]]
    results = await asyncio.gather(*(generate(engine, p, seed=n) for n, p in enumerate(prompts)))
    for prompt, result in zip(prompts, results, strict=True):
        expected = recomputed(model, prompt, result.output_ids)
        assert result.logprobs == pytest.approx(expected, abs=1e-4)
    assert computed == [50, *[3] * 5, 3]


async def test_prefixes_of_old_weights_are_never_used(
    engine: TorchEngine, tiny: Path, tiny_other: Path
) -> None:
    await asyncio.gather(*(generate(engine, p) for p in PROMPTS))
    async with engine.hold():
        await engine.load_policy(tiny_other, version=4)
    results = await asyncio.gather(*(generate(engine, p) for p in PROMPTS))
    model = reference(tiny_other)
    for prompt, result in zip(PROMPTS, results, strict=True):
        assert result.logprobs == pytest.approx(recomputed(model, prompt, result.output_ids), abs=1e-4)


async def test_top_p_reports_the_nucleus_it_drew_from(engine: TorchEngine, tiny: Path) -> None:
    prompt, top_p = PROMPTS[1], 0.6
    result = await generate(engine, prompt, top_p=top_p, seed=4, max_new_tokens=40)
    rows = full_logprobs(reference(tiny), [*prompt, *result.output_ids])[len(prompt) - 1 :]
    for row, token, logprob in zip(rows, result.output_ids, result.logprobs, strict=True):
        ordered, order = row.exp().sort(descending=True)
        size = int((ordered.cumsum(0) < top_p).sum()) + 1
        assert token in order[:size].tolist()
        assert logprob == pytest.approx(float(row[token] - ordered[:size].sum().log()), abs=1e-3)


async def test_a_seed_gives_the_same_tokens_whoever_runs_beside_it(tiny: Path) -> None:
    alone = make_engine(max_batch=1)
    await alone.start(tiny, 0)
    singles = [await generate(alone, p, seed=n, max_new_tokens=20) for n, p in enumerate(PROMPTS)]
    await alone.stop()
    crowd = make_engine(max_batch=4)
    await crowd.start(tiny, 0)
    late = [asyncio.create_task(generate(crowd, p, seed=n, max_new_tokens=20)) for n, p in enumerate(PROMPTS)]
    noise = [generate(crowd, [n + 1, 8, 9], seed=90 + n, max_new_tokens=3 + n) for n in range(9)]
    together = (await asyncio.gather(*late, *noise))[: len(PROMPTS)]
    await crowd.stop()
    assert [r.output_ids for r in together] == [r.output_ids for r in singles]
    assert len({tuple(r.output_ids) for r in together}) == len(PROMPTS)


async def test_different_seeds_draw_from_the_distribution(engine: TorchEngine, tiny: Path) -> None:
    """Equal prompts (one prefill for all); frequencies of the first token follow its probabilities."""
    prompt = PROMPTS[3]
    results = await asyncio.gather(*(generate(engine, prompt, seed=s, max_new_tokens=1) for s in range(600)))
    probabilities = full_logprobs(reference(tiny), [*prompt, 0])[-1].exp()
    counts = torch.bincount(torch.tensor([r.output_ids[0] for r in results]), minlength=len(probabilities))
    top = probabilities.argsort(descending=True)[:5]
    expected, spread = 600 * probabilities[top], (600 * probabilities[top]).sqrt()
    assert bool(((counts[top] - expected).abs() < 5 * spread + 1).all())


async def test_a_load_in_mid_generation_changes_version_and_weights(
    engine: TorchEngine, tiny: Path, tiny_other: Path
) -> None:
    counters = [Counting() for _ in PROMPTS]
    tasks = [
        asyncio.create_task(engine.generate(p, Sampling(seed=n, max_new_tokens=400), c))
        for n, (p, c) in enumerate(zip(PROMPTS, counters, strict=True))
    ]
    while min(c.count for c in counters) < 5:
        await asyncio.sleep(0.005)
    async with engine.hold():
        await engine.load_policy(tiny_other, version=4)
    results = await asyncio.gather(*tasks)
    old, new = reference(tiny), reference(tiny_other)
    for prompt, result in zip(PROMPTS, results, strict=True):
        cut = result.versions.index(4)
        assert 0 < cut < 400
        assert result.versions == [3] * cut + [4] * (400 - cut)
        before = recomputed(old, prompt, result.output_ids[:cut])
        after = recomputed(new, [*prompt, *result.output_ids[:cut]], result.output_ids[cut:])
        assert result.logprobs == pytest.approx(before + after, abs=1e-3)


async def test_nothing_is_generated_inside_a_hold(engine: TorchEngine) -> None:
    task = asyncio.create_task(generate(engine, PROMPTS[0], max_new_tokens=300))
    await asyncio.sleep(0.05)
    async with engine.hold():
        other = asyncio.create_task(generate(engine, PROMPTS[1], max_new_tokens=1))
        await asyncio.sleep(0.5)
        assert not task.done()
        assert not other.done()
        assert len(await engine.score([1, 2, 3])) == 2
    assert len((await task).output_ids) == 300
    assert len((await other).output_ids) == 1


async def test_score_is_the_log_softmax(engine: TorchEngine, tiny: Path) -> None:
    ids = PROMPTS[3]
    rows = full_logprobs(reference(tiny), ids)
    expected = [float(row[token]) for row, token in zip(rows, ids[1:], strict=True)]
    assert await engine.score(ids) == pytest.approx(expected, abs=1e-4)


async def test_end_token_stops_and_stays(engine: TorchEngine) -> None:
    free = await generate(engine, PROMPTS[1], seed=2, max_new_tokens=40)
    end = free.output_ids[10]
    stops = Stops(frozenset({end}), [], lambda _: "")
    result = await engine.generate(PROMPTS[1], Sampling(seed=2, max_new_tokens=40), stops)
    cut = free.output_ids.index(end) + 1
    assert result.output_ids == free.output_ids[:cut]
    assert result.finish_reason == "stop"


async def test_a_small_budget_only_makes_requests_wait(tiny: Path) -> None:
    engine = make_engine(kv_bytes=512 * 2 * 2 * 16 * 4 * 2 // 4)  # 128 tokens of 2 layers x 2 heads x 16 x 2
    await engine.start(tiny, 0)
    results = await asyncio.gather(*(generate(engine, p, max_new_tokens=30) for p in PROMPTS))
    assert all(len(r.output_ids) == 30 for r in results)
    with pytest.raises(BadRequest):
        await generate(engine, [1] * 100, max_new_tokens=40)
    await engine.stop()


async def test_too_long_is_refused(engine: TorchEngine) -> None:
    with pytest.raises(BadRequest):
        await generate(engine, [1] * (CONTEXT - 5), max_new_tokens=6)
    assert len((await generate(engine, [1] * (CONTEXT - 5), max_new_tokens=5)).output_ids) == 5


async def test_a_cancelled_request_leaves_the_others_alone(engine: TorchEngine) -> None:
    alone = await generate(engine, PROMPTS[0], seed=1, max_new_tokens=60)
    doomed = [asyncio.create_task(generate(engine, p, max_new_tokens=400)) for p in PROMPTS[1:5]]
    kept = asyncio.create_task(generate(engine, PROMPTS[0], seed=1, max_new_tokens=60))
    await asyncio.sleep(0.03)
    for task in doomed:
        task.cancel()
    assert (await kept).output_ids == alone.output_ids
    assert all(
        isinstance(r, asyncio.CancelledError) for r in await asyncio.gather(*doomed, return_exceptions=True)
    )


async def test_weights_of_another_model_are_refused(engine: TorchEngine, tmp_path: Path) -> None:
    deeper = make_tiny(tmp_path / "deep", layers=3)
    (tmp_path / "empty").mkdir()
    async with engine.hold():
        for folder in (deeper, tmp_path / "empty"):
            with pytest.raises(PolicyRefused) as caught:
                await engine.load_policy(folder, 9)
            assert caught.value.reason == "incompatible"


async def test_untied_weights_load(tmp_path: Path) -> None:
    first, second = make_tiny(tmp_path / "1", 1, tie=False), make_tiny(tmp_path / "2", 2, tie=False)
    engine = make_engine()
    await engine.start(first, 0)
    async with engine.hold():
        await engine.load_policy(second, 1)
    rows = full_logprobs(reference(second), PROMPTS[0])
    expected = [float(row[token]) for row, token in zip(rows, PROMPTS[0][1:], strict=True)]
    assert await engine.score(PROMPTS[0]) == pytest.approx(expected, abs=1e-4)
    await engine.stop()


async def test_stop_ends_every_request_typed(tiny: Path) -> None:
    engine = make_engine()
    await engine.start(tiny, 0)
    task = asyncio.create_task(generate(engine, PROMPTS[0], max_new_tokens=400))
    await asyncio.sleep(0.02)
    await engine.stop()
    with pytest.raises(EngineDied):
        await task
    assert not engine.alive
    with pytest.raises(EngineDied):
        await generate(engine, PROMPTS[0])


async def test_a_step_that_fails_kills_the_engine_not_the_process(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine()
    await engine.start(tiny, 0)

    def broken(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(engine._batch, "step", broken)
    with pytest.raises(EngineDied, match="out of memory"):
        await generate(engine, PROMPTS[0])
    assert not engine.alive
    await engine.stop()
