"""Fenced blocks and marked cuts."""

from __future__ import annotations

import re

FENCE = re.compile(
    r"^[ \t]*```[ \t]*([\w+.-]*)[^\n]*\n(.*?)(?:^[ \t]*```[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)


def fenced_blocks(text: str) -> list[tuple[str, str]]:
    """(info word, content) of each fenced block; a block that never closes runs to the end of the text."""
    return [(match.group(1).lower(), match.group(2)) for match in FENCE.finditer(text)]


def cut(text: str, limit: int) -> str:
    """Head and tail of `text` in at most about `limit` characters; the cut is counted in the text."""
    if len(text) <= limit:
        return text
    head = limit // 2
    tail = limit - head
    return f"{text[:head]}\n[... {len(text) - limit} characters cut ...]\n{text[-tail:]}"
