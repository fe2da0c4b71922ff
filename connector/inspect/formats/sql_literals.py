"""Formats values as SQL literals, and as conditions that find the row with exactly these values.

The session must have `SET NAMES utf8mb4`, the time zone UTC and a `sql_mode` with backslash escapes
(`connector.inspect.formats.sql_session`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from connector.errors import ValueNotRepresentable

Column = Mapping[str, Any]
"""A column, as schemas/fragment.avsc describes it."""

EXACT_NUMBERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year"})
FLOATS: Final = frozenset({"float", "double"})
TIMES: Final = frozenset({"date", "time", "datetime", "timestamp"})
OWN_BYTES: Final = frozenset({"geometry", "vector"})  # types that compare with no string
MOST_DIGITS: Final = 65  # of a DECIMAL
MOST_SCALE: Final = 30
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_FRACTION: Final = re.compile(r"-?[0-9]+\.[0-9]+(?![0-9eE])")
_NAME: Final = re.compile(r"[a-z]+")
_ESCAPES: Final = {"\0": "\\0", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1a": "\\Z", "\\": "\\\\", "'": "''"}
_ESCAPED: Final = re.compile("[\0\n\r\t\x1a\\\\']")
_CONTROL: Final = re.compile("[\x01-\x08\x0b\x0c\x0e-\x19\x1b-\x1f\x7f-\x9f\u2028\u2029]")


def quoted(name: str) -> str:
    """A name in backticks."""
    return f"`{name.replace('`', '``')}`"


def type_name(column: Column) -> str:
    """MySQL's type without its length: `varchar`."""
    found = _NAME.match(column["type"])
    return found[0] if found else ""


def text(value: str, *, hexadecimal: bool = False) -> str:
    """A string literal; in hexadecimal also if it has characters that may not reach a terminal.

    Args:
        value: the text.
        hexadecimal: in hexadecimal in any case.
    """
    if value and (hexadecimal or _CONTROL.search(value)):
        return f"_utf8mb4 x'{value.encode().hex()}'"
    return f"'{_ESCAPED.sub(lambda found: _ESCAPES[found[0]], value)}'"


def literal(column: Column, value: object, *, hexadecimal: bool = False) -> str:
    """A value of a column.

    Args:
        column: the column.
        value: the value, as the log has it.
        hexadecimal: text in hexadecimal.

    Raises:
        ValueNotRepresentable: no literal has this value.
    """
    match value:
        case None:
            return "NULL"
        case int():
            return str(value)
        case float():
            return _float(column, value)
        case bytes():
            return _bytes(column, value)
    shown = str(value)
    if type_name(column) in EXACT_NUMBERS and _NUMBER.fullmatch(shown):
        return shown  # in quotes it would be compared as a double
    if type_name(column) == "json":
        return _json(shown, hexadecimal=hexadecimal)
    return text(shown, hexadecimal=hexadecimal)


def condition(column: Column, value: object, *, of_key: bool, hexadecimal: bool = False) -> str:
    """A condition that a column has a value.

    Args:
        column: the column.
        value: the value, as the log has it.
        of_key: the column is in the primary key: the key's own comparison finds one row. Otherwise the bytes must be
            the same, whatever the collation.
        hexadecimal: text in hexadecimal.

    Raises:
        ValueNotRepresentable: no literal has this value.
    """
    name, kind = quoted(column["name"]), type_name(column)
    if value is None:
        return f"{name} IS NULL"
    if kind == "json":
        shown = text(str(value), hexadecimal=hexadecimal)
    else:
        shown = literal(column, value, hexadecimal=hexadecimal)
    if isinstance(value, bytes):
        return f"HEX({name}) = '{value.hex().upper()}'" if kind in OWN_BYTES else f"{name} = {shown}"
    if kind in FLOATS and value == 0:
        return (
            f"{name} = 0 AND CAST({name} AS CHAR) {'' if math.copysign(1, float(str(value))) < 0 else 'NOT '}LIKE '-%'"
        )
    if of_key or kind in EXACT_NUMBERS or kind in FLOATS or kind in TIMES or isinstance(value, int):
        return f"{name} = {shown}"
    return f"CAST(CONVERT({name} USING utf8mb4) AS BINARY) = CAST({shown} AS BINARY)"


def _float(column: Column, value: float) -> str:
    if not math.isfinite(value):
        raise ValueNotRepresentable("a number is not finite", column=column["name"], value=value)
    shown = repr(value)
    return shown if "e" in shown else f"{shown}e0"  # without an exponent it would be a DECIMAL


def _bytes(column: Column, value: bytes) -> str:
    if type_name(column) == "bit":
        return str(int.from_bytes(value, "big"))
    if column["charset"] not in {"", "binary"}:
        raise ValueNotRepresentable(
            f"a text that is not valid in {column['charset']} has no literal",
            hint="print it with --format tungsten or json",
            column=column["name"],
            bytes=value[:32].hex(),
        )
    return f"x'{value.hex()}'" if value else "''"


class _Decimal(str):
    """A number of a JSON document that no double prints like this."""

    __slots__ = ()


def _json(value: str, *, hexadecimal: bool) -> str:
    """A JSON document. MySQL reads `1.10` as the double 1.1, so its DECIMALs are set one by one."""
    document = text(value, hexadecimal=hexadecimal)
    if all(_printed_as_double(found[0]) for found in _FRACTION.finditer(value)):
        return document
    parsed = json.loads(value, parse_float=lambda token: 0.0 if _printed_as_double(token) else _Decimal(token))
    sets = [
        f", {text(path)}, CAST('{number}' AS DECIMAL({MOST_DIGITS}, {scale}))"
        for path, number in _decimals(parsed, "$")
        if (scale := len(number.partition(".")[2])) <= MOST_SCALE and len(number.lstrip("-")) <= MOST_DIGITS + 1
    ]
    return f"JSON_SET({document}{''.join(sets)})" if sets else document


def _printed_as_double(token: str) -> bool:
    return "e" in token.lower() or repr(float(token)) == token


def _decimals(value: object, path: str) -> Iterator[tuple[str, str]]:
    """The paths and digits of the DECIMALs in a document."""
    if isinstance(value, _Decimal):
        yield path, value
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _decimals(one, f"{path}[{index}]")
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _decimals(one, f"{path}.{json.dumps(name, ensure_ascii=False)}")
