"""Stop tokens and stop strings."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.inference.prompts.stopping import Stops
from services.inference.prompts.tokenizer import ChatTokenizer
from tests.unit.inference.tiny_model import make_tiny


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> ChatTokenizer:
    return ChatTokenizer(make_tiny(tmp_path_factory.mktemp("stopping")))


def stopped_after(stops: Stops, tokens: Sequence[int]) -> int | None:
    return next((n for n, token in enumerate(tokens, 1) if stops.push(token)), None)


def pieces(text: str, sizes: Sequence[int]) -> list[str]:
    """The text cut into pieces of the given sizes, over and over."""
    out, at, n = [], 0, 0
    while at < len(text):
        out.append(text[at : at + sizes[n % len(sizes)]])
        at += sizes[n % len(sizes)]
        n += 1
    return out


@settings(max_examples=300)
@given(
    st.text("ab`\n", max_size=60),
    st.lists(st.text("ab`\n", min_size=1, max_size=5), min_size=1, max_size=3),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
)
def test_stops_with_the_token_that_completes_the_first_stop_string(
    text: str, strings: list[str], sizes: list[int]
) -> None:
    """Against the whole text, for any cut into tokens."""
    parts = pieces(text, sizes)
    stops = Stops(frozenset(), strings, lambda ids: "".join(parts[i] for i in ids))
    expected = next(
        (n for n in range(1, len(parts) + 1) if any(s in "".join(parts[:n]) for s in strings)), None
    )
    assert stopped_after(stops, range(len(parts))) == expected


def test_stop_string_of_many_byte_tokens(tokenizer: ChatTokenizer) -> None:
    text = "αβγ fertig 🎉 und weiter"
    tokens = tokenizer.encode(text)
    stops = Stops(frozenset(), ["fertig 🎉"], tokenizer.decode)
    after = stopped_after(stops, tokens)
    assert after is not None
    assert tokenizer.text(tokens[:after]) == "αβγ fertig 🎉"


def test_end_token_needs_no_text() -> None:
    stops = Stops(frozenset({7}), [""], lambda _: pytest.fail("decoded"))
    assert not stops.needs_text
    assert stopped_after(stops, [1, 2, 7, 3]) == 3
