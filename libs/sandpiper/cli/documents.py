"""Run documents on the command line: a file, changed with `--set key=value`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from sandpiper.cli.errors import BadInput
from sandpiper.strict_yaml import load_yaml


def load_document(path: Path, changes: Sequence[str] = ()) -> dict[str, Any]:
    """The document in `path` (YAML or JSON; `-` is stdin) with `changes` applied.

    A local policy folder becomes an absolute path, since the learner has another working directory.
    """
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text()
        document = load_yaml(text)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not valid YAML or JSON: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict):
        raise BadInput(f"{path}: a run document is a mapping of field: value")
    for change in changes:
        apply(document, change)
    policy = document.get("policy")
    if isinstance(policy, dict) and isinstance(policy.get("path"), str):
        policy["path"] = str(Path(policy["path"]).expanduser().absolute())
    return document


def apply(document: dict[str, Any], change: str) -> None:
    """One `dotted.key=value`; the value is read as YAML, so numbers, null and lists work."""
    key, equals, text = change.partition("=")
    parts = key.split(".")
    if not equals or not all(parts):
        raise BadInput(f"--set {change!r}: write it as key=value, for example budget.steps=4")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise BadInput(f"--set {change!r}: the value is not valid YAML") from None
    inner = document
    for part in parts[:-1]:
        found = inner.setdefault(part, {})
        if not isinstance(found, dict):
            raise BadInput(f"--set {change!r}: {part!r} is not a group of settings")
        inner = found
    inner[parts[-1]] = value
