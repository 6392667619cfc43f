"""YAML from people we do not know: safe types, and time and memory that grow only with the size of the text.

libyaml reads it: the pure Python scanner takes quadratic time on `[[[[…`, and aliases can make a short text
describe a value without bound.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

MAX_DEPTH = 64
_OPENS = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_CLOSES = (yaml.SequenceEndEvent, yaml.MappingEndEvent)


class _Loader(yaml.CSafeLoader):
    """Plain keys only, each once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            problem = None if isinstance(key, yaml.ScalarNode) else "a key must be a plain word"
            if problem is None and key.value in seen:
                problem = f"{key.value!r} is there twice"
            if problem is not None:
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def load_yaml(text: str) -> Any:
    """The one document in `text` as plain data.

    Raises:
        yaml.YAMLError: not YAML, or with aliases, repeated keys, deep nesting (a marked error has the line).
        ValueError: a number or date that Python cannot hold.
    """
    _check_shape(text)
    return yaml.load(text, Loader=_Loader)


def _check_shape(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, _OPENS) - isinstance(event, _CLOSES)
        problem = None
        if isinstance(event, yaml.AliasEvent):
            problem = "aliases are not allowed"
        elif depth > MAX_DEPTH:
            problem = f"nests deeper than {MAX_DEPTH}"
        if problem is not None:
            mark: Any = event.start_mark
            raise yaml.composer.ComposerError(None, None, problem, mark)
