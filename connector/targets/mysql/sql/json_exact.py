"""JSON documents as expressions of MySQL that keep each number as the source printed it.

MySQL's JSON has decimal numbers beside doubles, and prints `1.10` for one. From a text it makes doubles alone: `1.1`.
Where a document has a number that would be printed otherwise, that part of it is made by functions.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from connector.targets.mysql.sql.names import text_literal

_NUMBERS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?')
_LARGEST: Final = 1 << 64
_SMALLEST: Final = -(1 << 63)


class _Decimal(str):
    """A number that only MySQL's DECIMAL keeps as it is written."""

    __slots__ = ()


def json_literal(text: str) -> str:
    """A document as a literal, or as an expression if a number would change."""
    if keeps_numbers(text):
        return text_literal(text)
    document = json.loads(text, parse_float=_number, parse_int=_number)
    if isinstance(document, _Decimal):
        return f"CAST({document} AS JSON)"
    return _expression(document)


def keeps_numbers(text: str) -> bool:
    """True if MySQL prints all numbers as they are after it has read the document as text."""
    return not any(_changes(token) for token in _NUMBERS.findall(text) if token[0] != '"')


def _changes(token: str) -> bool:
    if "e" in token or "E" in token:
        return False  # a double, as MySQL prints it
    if "." in token:
        return repr(float(token)) != token
    return not _SMALLEST <= int(token) < _LARGEST


def _number(token: str) -> Any:
    return _Decimal(token) if _changes(token) else json.loads(token)


def _expression(value: Any) -> str:
    if isinstance(value, _Decimal):
        return str(value)
    if isinstance(value, dict):
        pairs = (f"{text_literal(name)}, {_expression(item)}" for name, item in value.items())
        return f"JSON_OBJECT({', '.join(pairs)})"
    if isinstance(value, list):
        return f"JSON_ARRAY({', '.join(map(_expression, value))})"
    return f"CAST({text_literal(json.dumps(value, ensure_ascii=False))} AS JSON)"
