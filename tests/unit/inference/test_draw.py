"""Drawing tokens from logits."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from services.inference.engines.base import Sampling, mix, uniform
from services.inference.engines.draw import draw

FINITE = st.floats(-30, 30, width=32, allow_subnormal=False)  # torch flushes those to 0
ROWS = st.integers(2, 40).flatmap(
    lambda vocabulary: st.lists(
        st.lists(FINITE, min_size=vocabulary, max_size=vocabulary), min_size=1, max_size=5
    )
)
SAMPLINGS = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.5]),
    top_p=st.sampled_from([1.0, 0.95, 0.5, 0.01]),
)
UNIT = st.floats(0, 1, exclude_max=True)


@settings(deadline=None, max_examples=200)
@given(ROWS, st.data())
def test_every_draw_is_possible_and_its_logprob_right(rows: list[list[float]], data: st.DataObject) -> None:
    logits = torch.tensor(rows)
    samplings = [data.draw(SAMPLINGS) for _ in rows]
    tokens, logprobs = draw(logits, samplings, [data.draw(UNIT) for _ in rows])
    for row, sampling, token, logprob in zip(logits, samplings, tokens, logprobs, strict=True):
        assert math.isfinite(logprob)
        assert logprob <= 1e-6
        scale = sampling.temperature or 1.0
        plain = torch.log_softmax(row / scale, 0)
        if sampling.temperature == 0:
            assert row[token] == row.max()
        if sampling.top_p == 1 or sampling.temperature == 0:
            assert logprob == pytest.approx(float(plain[token]), abs=1e-4)
        else:
            assert logprob >= float(plain[token]) - 1e-4  # renormalised over less mass
            better = float(plain.exp()[plain > plain[token]].sum())
            assert better < sampling.top_p + 1e-5


@settings(deadline=None)
@given(st.lists(FINITE, min_size=3, max_size=20), UNIT, st.integers(1, 6))
def test_a_row_does_not_depend_on_its_neighbours(row: list[float], point: float, rows: int) -> None:
    torch.manual_seed(rows)
    others = torch.randn(rows, len(row))
    alone = draw(torch.tensor([row]), [Sampling()], [point])
    crowd = draw(torch.cat([others, torch.tensor([row])]), [Sampling()] * (rows + 1), [0.3] * rows + [point])
    assert crowd[0][-1] == alone[0][0]


def test_inversion_meets_the_boundaries() -> None:
    logits = torch.tensor([[0.25, 0.0, 0.5, 0.25, 0.0]]).log()
    points = [0.0, 0.2499, 0.2501, 0.7499, 0.7501, 1 - 2**-53]
    found = [draw(logits, [Sampling()], [point])[0][0] for point in points]
    assert found == [0, 0, 2, 2, 3, 3]


@given(st.integers(0, 2**64 - 1), st.integers(0, 10**6))
def test_random_numbers_are_in_range_and_repeatable(seed: int, position: int) -> None:
    assert 0 <= uniform(seed, position) < 1
    assert 0 <= mix(seed, position) < 2**64
    assert mix(seed, position) == mix(seed, position)


def test_neighbouring_seeds_and_positions_are_not_alike() -> None:
    numbers = [uniform(seed, position) for seed in range(100) for position in range(100)]
    assert len(set(numbers)) == 10_000
    counts = torch.histc(torch.tensor(numbers, dtype=torch.float64), bins=20, min=0, max=1)
    assert counts.min() > 400
    assert counts.max() < 600
    pairs = torch.tensor(numbers, dtype=torch.float64).view(100, 100)
    assert abs(float(torch.corrcoef(pairs).fill_diagonal_(0).abs().max())) < 0.5
