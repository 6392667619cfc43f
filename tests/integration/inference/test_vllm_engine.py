"""The vLLM engine on a tiny model, against transformers. Skipped where vLLM is not made for this machine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from services.inference.config import InferenceSettings
from services.inference.engines.base import Generation, Sampling
from services.inference.engines.choose import build, vllm_fits
from services.inference.engines.vllm_engine import VllmEngine
from services.inference.failures import BadRequest, EngineDied
from services.inference.policies.probe import verify
from services.inference.prompts.stopping import Stops
from tests.unit.inference.memory_objects import true_probe
from tests.unit.inference.tiny_model import Counting, make_tiny, never_stop, recomputed, reference

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not vllm_fits(), reason="no vLLM for this machine"),
    pytest.mark.filterwarnings("ignore"),  # vLLM's own
    pytest.mark.timeout(900),
]

PROMPTS = [list(range(5, 40)), [100, 101, 102], [7, 8] * 20, [250, 4, 4]]
OPTIONS: dict[str, Any] = {
    "max_batch": 8,
    "max_model_len": 2048,
    "vllm": {
        "dtype": "float32",
        "kv_cache_gib": 0.25,
        "threads": 1,
        "arguments": {"max_num_batched_tokens": 512},
    },
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two sets of weights; heads of 32, since vLLM's CPU kernels have no smaller ones."""
    return [make_tiny(tmp_path_factory.mktemp(f"vllm-{seed}"), seed, head_size=32) for seed in (0, 1)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(folders: list[Path]) -> AsyncIterator[VllmEngine]:
    """Version 1 of the first folder."""
    made = await asyncio.to_thread(build, "vllm", InferenceSettings.model_validate(OPTIONS))
    assert isinstance(made, VllmEngine)
    await made.start(folders[0], version=1)
    yield made
    await made.stop()
    assert not [p for p in psutil.Process().children(recursive=True) if p.name().startswith("VLLM")]


async def generate(engine: VllmEngine, prompt: list[int], stops: Stops, **sampling: Any) -> Generation:
    return await engine.generate(prompt, Sampling(**{"max_new_tokens": 16, **sampling}), stops)


async def test_greedy_and_sampled_logprobs_are_those_of_transformers(
    engine: VllmEngine, folders: list[Path]
) -> None:
    model = reference(folders[0])
    for heat in (0.0, 0.6, 1.3):
        results = await asyncio.gather(
            *(generate(engine, p, never_stop(), temperature=heat, seed=n) for n, p in enumerate(PROMPTS))
        )
        for prompt, result in zip(PROMPTS, results, strict=True):
            expected = recomputed(model, prompt, result.output_ids, heat or 1.0)
            assert result.logprobs == pytest.approx(expected, abs=2e-3)
            assert result.finish_reason == "length"
            assert len(result.output_ids) == 16


async def test_seeds_repeat(engine: VllmEngine) -> None:
    alone = await generate(engine, PROMPTS[0], never_stop(), seed=5)
    crowd = await asyncio.gather(*(generate(engine, p, never_stop(), seed=5) for p in PROMPTS))
    assert crowd[0].output_ids == alone.output_ids


async def test_more_prompt_tokens_than_one_pass_takes(engine: VllmEngine) -> None:
    """With seeds: a prompt that is cut by the end of a pass has killed vLLM's worker."""
    prompts = [[n, *range(3, 200)] for n in range(8)]
    crowd = await asyncio.gather(
        *(generate(engine, p, never_stop(), seed=n, max_new_tokens=4) for n, p in enumerate(prompts))
    )
    assert all(len(result.output_ids) == 4 for result in crowd)
    alone = await generate(engine, prompts[7], never_stop(), seed=7, max_new_tokens=4)
    assert crowd[7].output_ids == alone.output_ids


async def test_stops_by_token_and_by_text(engine: VllmEngine) -> None:
    free = await generate(engine, PROMPTS[1], never_stop(), seed=3, max_new_tokens=40)
    end = free.output_ids[9]
    cut = free.output_ids[: free.output_ids.index(end) + 1]
    by_token = await generate(engine, PROMPTS[1], Stops(frozenset({end}), [], str), seed=3, max_new_tokens=40)
    by_text = await generate(
        engine,
        PROMPTS[1],
        Stops(frozenset(), [f"<{end}>"], lambda ids: "".join(f"<{i}>" for i in ids)),
        seed=3,
        max_new_tokens=40,
    )
    for result in (by_token, by_text):
        assert result.output_ids == cut
        assert result.finish_reason == "stop"


async def test_a_load_in_mid_generation_loses_no_token(engine: VllmEngine, folders: list[Path]) -> None:
    counters = [Counting() for _ in PROMPTS]
    tasks = [
        asyncio.create_task(engine.generate(p, Sampling(seed=n, max_new_tokens=300), c))
        for n, (p, c) in enumerate(zip(PROMPTS, counters, strict=True))
    ]
    while min(c.count for c in counters) < 5:
        await asyncio.sleep(0.005)
    async with engine.hold():
        await engine.load_policy(folders[1], version=2)
        assert await verify(engine, true_probe(folders[1]), "loaded") < 0.01
    old, new = reference(folders[0]), reference(folders[1])
    for prompt, result in zip(PROMPTS, await asyncio.gather(*tasks), strict=True):
        cut = result.versions.index(2)
        assert result.versions == [1] * cut + [2] * (300 - cut)
        before = recomputed(old, prompt, result.output_ids[:cut])
        after = recomputed(new, [*prompt, *result.output_ids[:cut]], result.output_ids[cut:])
        assert result.logprobs == pytest.approx(before + after, abs=2e-3)
    async with engine.hold():
        await engine.load_policy(folders[0], version=1)


async def test_too_long_and_cancelled(engine: VllmEngine) -> None:
    with pytest.raises(BadRequest):
        await generate(engine, [1] * 510, never_stop(), max_new_tokens=3)
    task = asyncio.create_task(generate(engine, PROMPTS[0], never_stop(), max_new_tokens=400))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len((await generate(engine, PROMPTS[0], never_stop())).output_ids) == 16


async def test_a_killed_engine_process_is_noticed_and_ends_typed(engine: VllmEngine) -> None:
    """Last, since the engine is gone after it."""
    task = asyncio.create_task(generate(engine, PROMPTS[0], never_stop(), max_new_tokens=450))
    await asyncio.sleep(0.1)
    core = next(p for p in psutil.Process().children() if "EngineCore" in " ".join(p.cmdline()))
    core.kill()
    with pytest.raises(EngineDied):
        async with asyncio.timeout(60):
            await task
    assert not engine.alive


SCRIPT = """
import asyncio, sys
from pathlib import Path
import psutil
from services.inference.config import InferenceSettings
from services.inference.engines.choose import build

async def main():
    engine = build("vllm", InferenceSettings.model_validate_json(sys.argv[2]))
    await engine.start(Path(sys.argv[1]), 0)
    print("pids", *(p.pid for p in psutil.Process().children(recursive=True)), flush=True)
    await asyncio.sleep(600)

if __name__ == "__main__":
    asyncio.run(main())
"""


async def test_nothing_outlives_a_killed_service(folders: list[Path], tmp_path: Path) -> None:
    script = tmp_path / "host.py"
    script.write_text(SCRIPT)
    host = await asyncio.create_subprocess_exec(
        sys.executable, str(script), str(folders[0]), json.dumps(OPTIONS), stdout=subprocess.PIPE
    )
    assert host.stdout is not None
    async for line in host.stdout:
        if line.startswith(b"pids"):
            break
    pids = [int(pid) for pid in line.split()[1:]]
    assert len(pids) >= 2
    os.kill(host.pid, signal.SIGKILL)
    await host.wait()
    async with asyncio.timeout(30):
        while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids):
            await asyncio.sleep(0.1)
