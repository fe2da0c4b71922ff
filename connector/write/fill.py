"""What MySQL gives to existing rows when a column is added (manual, "Data Type Default Values", "ALTER TABLE").

Values are said as the log says them. Whatever cannot be known for certain is `Unknowable`, which stops on a table
that is not empty.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_UP, Decimal
from zoneinfo import ZoneInfo

from connector.ddl.column_spec import ColumnSpec, Computed, Literal, Now, Null
from connector.ddl.tokens import Lexeme
from connector.ddl.type_names import BLOBS, FLOATS, INTEGERS, TEMPORALS, TEXTS
from connector.thl.layout import Column
from connector.write.operations import Filled, Unknowable, Value
from connector.write.types import fraction, parse

_ZERO_TIMES = {"time": "00:00:00", "datetime": "0000-00-00 00:00:00", "timestamp": "0000-00-00 00:00:00"}
_CANONICAL = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "time": re.compile(r"-?\d{2,3}:\d\d:\d\d"),
    "datetime": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"),
    "timestamp": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"),
}


@dataclass(frozen=True, slots=True)
class Moment:
    """When a statement ran: the µs since 1970 UTC, and the session's `time_zone` ("" when not known)."""

    micros: int
    zone: str = ""


def fill(spec: ColumnSpec, moment: Moment) -> Filled | Unknowable:
    """The value of a new column in rows that are already there.

    Args:
        spec: the column.
        moment: the statement's: what CURRENT_TIMESTAMP is.
    """
    if spec.counted:
        return Unknowable(f"the source numbers column {spec.column.name}")
    match spec.default:
        case Computed():
            return Unknowable(f"the source computes column {spec.column.name}")
        case Null():
            return Filled(None)
        case None:
            return Filled(None) if spec.column.nullable else _implicit(spec.column)
        case Now():
            return _now(spec.column, moment)
        case Literal() as literal:
            value = _constant(spec.column, literal, moment)
            return value if isinstance(value, Unknowable) else Filled(value)


def default(spec: ColumnSpec, moment: Moment) -> Filled | None:
    """What a column has in a new row that gives it no value; None where the source computes it, or it is not certain.

    Args:
        spec: the column.
        moment: the definition's: a timestamp's default is in its session's time zone.
    """
    if spec.generated or isinstance(spec.default, Now):
        return None
    found = fill(spec, moment)
    return found if isinstance(found, Filled) else None


def _implicit(column: Column) -> Filled | Unknowable:
    """What a NOT NULL column without a default gets."""
    kind = parse(column.type)
    if kind.base in INTEGERS or kind.base == "year":
        return Filled(0)
    if kind.base in FLOATS:
        return Filled(0.0)
    if kind.base == "decimal":
        return Filled(str(Decimal(0).quantize(Decimal(1).scaleb(-kind.sizes[1]))))
    if kind.base == "date":
        return Filled("0000-00-00")
    if kind.base in TEMPORALS:
        return Filled(_ZERO_TIMES[kind.base] + _fraction_zeros(column))
    if kind.base == "bit":
        return Filled(bytes((kind.sizes[0] + 7) // 8))
    if kind.base == "binary":
        return Filled(bytes(kind.sizes[0]))
    if kind.base == "varbinary" or kind.base in BLOBS:
        return Filled(b"")
    if kind.base in ("char", "varchar", "set") or kind.base in TEXTS:
        return Filled("")
    if kind.base == "enum":
        return Filled(column.labels[0])
    if kind.base == "json":
        return Filled("null")
    return Unknowable(f"column {column.name} of type {column.type} has no default")


def _now(column: Column, moment: Moment) -> Filled | Unknowable:
    zone: tzinfo | None = UTC
    if parse(column.type).base != "timestamp":
        zone = _zone(moment.zone)
    if zone is None:
        return Unknowable(f"column {column.name} has the time of a session in time zone {moment.zone or 'not known'}")
    places = fraction(column)
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment.micros)
    local = at.astimezone(zone)
    text = f"{local:%Y-%m-%d %H:%M:%S}"
    return Filled(text + (f".{local.microsecond:06d}"[: places + 1] if places else ""))


def _zone(name: str) -> tzinfo | None:
    """A session's time zone, where it can be known: not SYSTEM."""
    if match := re.fullmatch(r"([+-])(\d{1,2}):(\d\d)", name):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-offset if match[1] == "-" else offset)
    if name in ("", "SYSTEM"):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def _constant(column: Column, literal: Literal, moment: Moment) -> Value | Unknowable:
    """A literal as a value of the column, where its form leaves no doubt."""
    kind = parse(column.type)
    unknowable = Unknowable(f"default {literal.text!r} of column {column.name} {column.type} is not in its usual form")
    if literal.kind in (Lexeme.HEX, Lexeme.BITS):
        return _bits(column, literal, unknowable)
    if kind.base in INTEGERS or kind.base in FLOATS or kind.base in ("decimal", "year"):
        return _number(column, literal, unknowable)
    if kind.base == "bit" and literal.kind is Lexeme.NUMBER and literal.text.isdigit() and not literal.negative:
        return int(literal.text).to_bytes((kind.sizes[0] + 7) // 8, "big")
    if literal.kind is not Lexeme.STRING and kind.base not in ("char", "varchar"):
        return unknowable
    text = ("-" if literal.negative else "") + literal.text
    if kind.base == "char":
        return text.rstrip(" ")
    if kind.base == "varchar":
        return text
    if kind.base in ("binary", "varbinary"):
        raw = text.encode()
        return raw.ljust(kind.sizes[0], b"\0") if kind.base == "binary" else raw
    if kind.base == "enum":
        return text if text in column.labels else unknowable
    if kind.base == "set":
        wanted = text.split(",") if text else []
        return text if [label for label in column.labels if label in wanted] == wanted else unknowable
    if kind.base in _CANONICAL:
        return _temporal(column, text, moment, unknowable)
    return unknowable


def _number(column: Column, literal: Literal, unknowable: Unknowable) -> Value | Unknowable:
    kind = parse(column.type)
    text = ("-" if literal.negative else "") + literal.text
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
        return unknowable
    number = Decimal(text)
    if kind.base in FLOATS:
        value = float(number)
        return float(struct.unpack("<f", struct.pack("<f", value))[0]) if kind.base == "float" else value
    if kind.base == "decimal":
        if abs(number) >= Decimal(10) ** (kind.sizes[0] - kind.sizes[1]):
            return unknowable
        rounded = f"{number.quantize(Decimal(1).scaleb(-kind.sizes[1]), ROUND_HALF_UP):f}"
        return rounded.removeprefix("-") if not Decimal(rounded) else rounded
    if number != number.to_integral_value():
        return unknowable
    whole = int(number)
    if kind.base == "year":
        return whole if whole == 0 or 1901 <= whole <= 2155 else unknowable
    return whole if whole < 2**63 else str(whole)


def _bits(column: Column, literal: Literal, unknowable: Unknowable) -> Value | Unknowable:
    """x'41' and b'101': a number for numbers, bytes for everything else."""
    kind = parse(column.type)
    number = int(literal.text or "0", 16 if literal.kind is Lexeme.HEX else 2)
    if literal.negative:
        return unknowable
    if kind.base == "bit":
        return number.to_bytes((kind.sizes[0] + 7) // 8, "big")
    if kind.base in INTEGERS:
        return number if number < 2**63 else str(number)
    width = (len(literal.text) + 1) // 2 if literal.kind is Lexeme.HEX else (len(literal.text) + 7) // 8
    raw = number.to_bytes(width, "big")
    if kind.base in ("binary", "varbinary"):
        return raw.ljust(kind.sizes[0], b"\0") if kind.base == "binary" else raw
    if kind.base in ("char", "varchar") and raw.isascii():
        return raw.decode()
    return unknowable


def _temporal(column: Column, text: str, moment: Moment, unknowable: Unknowable) -> Value | Unknowable:
    kind = parse(column.type)
    if not _CANONICAL[kind.base].fullmatch(text):
        return unknowable
    if kind.base == "date":
        return text
    if kind.base == "timestamp" and not text.startswith("0000"):
        # A literal is in the session's zone, the log in UTC.
        zone = _zone(moment.zone)
        if zone is None:
            return unknowable
        text = f"{datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    return text + _fraction_zeros(column)


def _fraction_zeros(column: Column) -> str:
    places = fraction(column)
    return "." + "0" * places if places else ""
