"""When a generation is over: an end token, or a stop string in the text of what was generated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Decode = Callable[[Sequence[int]], str]

# A character takes at most four byte tokens; the rest absorbs what a decoder does at the start of a text.
MARGIN = 8


class Stops:
    """Stop rule of one request.

    A stop string counts only within the generated text, however its characters are cut into tokens. The
    token that completes it is the last and stays in the output, so text and tokens agree.
    """

    def __init__(self, stop_ids: frozenset[int], strings: Sequence[str], decode: Decode) -> None:
        self._stop_ids = stop_ids
        self._strings = [s for s in strings if s]
        self._decode = decode
        longest = max((len(s.encode()) for s in self._strings), default=0)
        self._window = longest + MARGIN
        self._tail: list[int] = []

    @property
    def stop_ids(self) -> frozenset[int]:
        """Tokens that end the generation."""
        return self._stop_ids

    @property
    def needs_text(self) -> bool:
        """True when there are stop strings."""
        return bool(self._strings)

    def push(self, token: int) -> bool:
        """Take the next output token; True when it is the last."""
        if token in self._stop_ids:
            return True
        if not self._strings:
            return False
        self._tail = [*self._tail, token][-self._window :]
        text = self._decode(self._tail)
        return any(s in text for s in self._strings)
