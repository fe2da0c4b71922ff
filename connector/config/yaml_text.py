"""Parses YAML as it is specified, with plain values only, and names a problem without quoting the text."""

from __future__ import annotations

import re
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """YAML as specified: a duplicate key in a mapping is an error; PyYAML takes the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct one mapping."""
        seen: set[object] = set()
        for key, _ in node.value:
            name = getattr(key, "value", None)
            if isinstance(name, str) and name in seen:
                raise yaml.MarkedYAMLError(problem="duplicate key", problem_mark=key.start_mark)
            if isinstance(name, str):
                seen.add(name)
        return super().construct_mapping(node, deep)


def parsed(text: str) -> Any:
    """Parse a YAML document with plain values only.

    Raises:
        yaml.YAMLError: the text is not such a document.
    """
    try:
        document = yaml.load(text, _Loader)  # noqa: S506 (a subclass of SafeLoader)
        _refuse_cycles(document, (), set())
    except ValueError as error:
        raise yaml.MarkedYAMLError(problem="invalid date or number") from error
    except RecursionError as error:
        raise yaml.MarkedYAMLError(problem="too many nested levels") from error
    return document


def _refuse_cycles(value: object, above: tuple[int, ...], known: set[int]) -> None:
    """Refuse an alias that names a part of the document which contains it."""
    if id(value) in above:
        raise yaml.MarkedYAMLError(problem="an alias of something that contains it")
    if id(value) in known or not isinstance(value, dict | list):
        return
    known.add(id(value))
    for inner in value.values() if isinstance(value, dict) else value:
        _refuse_cycles(inner, (*above, id(value)), known)


def problem_of(error: yaml.YAMLError | UnicodeDecodeError) -> str:
    """Return the problem and its line, without the excerpt and quoted names: these may contain a password."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    if not isinstance(error, yaml.MarkedYAMLError):
        return "it contains characters that YAML does not allow"
    if error.problem_mark is None:
        return error.problem or "its content"
    parts = r"('(?:.|\\t|<[a-z ]+>)')|['\"].*"  # single characters and YAML's own names stay
    problem = re.sub(parts, lambda found: found[1] or "…", error.problem or "", flags=re.DOTALL)
    return f"{problem} in line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}"
