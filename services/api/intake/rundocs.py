"""A request body becomes a validated run document, or a 422 problem that names every bad field."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from sandpiper.runs import RunDocument
from sandpiper.strict_yaml import load_yaml
from services.api.problems import FieldError, ProblemError, invalid

JSON_TYPES = ("application/json",)
YAML_TYPES = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")


def parse_document(body: bytes, media_type: str) -> RunDocument:
    """JSON or YAML, by media type. Blocking, but bounded by the size of `body`."""
    read = _readers().get(media_type)
    if read is None:
        raise unsupported(media_type, (*JSON_TYPES, *YAML_TYPES))
    try:
        data = read(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise invalid(f"the document is not UTF-8 text (byte {error.start})") from None
    except yaml.MarkedYAMLError as error:
        raise _bad_yaml(error) from None
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg} (column {error.colno})"
        raise invalid(message, [FieldError(message=message, line=error.lineno)]) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise invalid(f"the document cannot be read: {error}") from None
    return validate(data)


def validate(data: Any) -> RunDocument:
    """The document in plain data."""
    try:
        document = RunDocument.model_validate(data)
    except ValidationError as error:
        errors = [
            FieldError(message=item["msg"].removeprefix("Value error, "), field=_field(item["loc"]))
            for item in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        detail = "; ".join(f"{item.field or 'document'}: {item.message}" for item in errors[:3])
        raise ProblemError(422, "invalid-run", detail, errors) from None
    try:
        text = document.model_dump_json()
    except PydanticSerializationError:
        raise ProblemError(422, "invalid-run", "the document holds a lone surrogate: not text") from None
    if "\\u0000" in text:
        raise ProblemError(422, "invalid-run", "the document holds a NUL character")
    return document


def unsupported(media_type: str, known: tuple[str, ...]) -> ProblemError:
    """415, naming what would do."""
    detail = f"cannot read {media_type or 'a body without Content-Type'}; send {', '.join(known)}"
    return ProblemError(415, "unsupported-media-type", detail, headers={"Accept-Post": ", ".join(known)})


def media_type_of(header: str | None) -> str:
    """The media type of a Content-Type header, without parameters."""
    return (header or "").split(";", 1)[0].strip().lower()


def _field(loc: tuple[int | str, ...]) -> str | None:
    return ".".join(map(str, loc)) or None


def _readers() -> dict[str, Callable[[str], Any]]:
    return {**dict.fromkeys(JSON_TYPES, _json), **dict.fromkeys(YAML_TYPES, load_yaml)}


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("a field is there twice in one object")
    return data


def _bad_yaml(error: yaml.MarkedYAMLError) -> ProblemError:
    line = error.problem_mark.line + 1 if error.problem_mark else None
    message = f"not valid YAML: {error.problem or error.context or 'syntax error'}"
    return invalid(message, [FieldError(message=message, line=line)])
