"""The tokenizer of a policy folder: encoding, chat template, and which tokens end a turn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from services.inference.failures import BadRequest, PolicyRefused

Message = dict[str, str]

# Does not occur in text, and templates pass it through unchanged.
MARKER = "\u2063sandpiper-reply\u2063"


class Tokenizer(Protocol):
    """What prompt building needs."""

    stop_ids: frozenset[int]

    def encode(self, text: str) -> list[int]:
        """Ids of a text that may hold special tokens; nothing is added at the ends."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text with special tokens written out."""
        ...

    def text(self, ids: Sequence[int]) -> str:
        """Text without special tokens: what the policy said."""
        ...

    def render(self, messages: Sequence[Message]) -> str:
        """The chat template, up to where the assistant's reply begins."""
        ...


class ChatTokenizer:
    """A transformers tokenizer with a chat template."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoTokenizer  # noqa: PLC0415  after configuration is parsed

        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # whatever the files of a stranger's model make it raise
            raise PolicyRefused("incompatible", f"no usable tokenizer: {error}") from error
        if not self._tokenizer.chat_template:
            raise PolicyRefused("incompatible", "the tokenizer has no chat template")
        self.stop_ids = frozenset(_end_tokens(folder)) | self._own_end()

    def encode(self, text: str) -> list[int]:
        """See `Tokenizer`."""
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int]) -> str:
        """See `Tokenizer`."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def text(self, ids: Sequence[int]) -> str:
        """See `Tokenizer`."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def render(self, messages: Sequence[Message]) -> str:
        """See `Tokenizer`. Raises BadRequest when the template refuses the messages."""
        from jinja2 import TemplateError  # noqa: PLC0415

        try:
            return str(
                self._tokenizer.apply_chat_template(
                    list(messages), tokenize=False, add_generation_prompt=True
                )
            )
        except TemplateError as error:
            raise BadRequest(f"the chat template refuses these messages: {error}") from error

    def _own_end(self) -> frozenset[int]:
        """The tokenizer's end token, and what its template puts after a reply if that is a special token."""
        ends = set() if self._tokenizer.eos_token_id is None else {int(self._tokenizer.eos_token_id)}
        rendered = ""
        with suppress(BadRequest):  # a template for one turn only
            rendered = self.render(after_reply([{"role": "user", "content": "."}]))
        _, found, suffix = rendered.rpartition(MARKER)
        after = self.encode(suffix) if found else []
        if after and after[0] in self._tokenizer.added_tokens_decoder:
            ends.add(after[0])
        return frozenset(ends)


def after_reply(messages: Sequence[Message]) -> list[Message]:
    """A conversation whose last reply is the marker, followed by `messages`."""
    return [{"role": "user", "content": ""}, {"role": "assistant", "content": MARKER}, *messages]


def _end_tokens(folder: Path) -> list[int]:
    """`eos_token_id` of config.json and generation_config.json: a number, a list, or absent."""
    ends: list[int] = []
    for name in ("config.json", "generation_config.json"):
        path = folder / name
        value = json.loads(path.read_text()).get("eos_token_id") if path.is_file() else None
        ends += value if isinstance(value, list) else [] if value is None else [value]
    return [int(end) for end in ends]
