"""Converts a literal that is the DEFAULT of a column, as MySQL does: one function for each family of types.

The rules are taken from servers (`test_default_values` compares a grid of types and forms). A conversion without a rule
is not known: None. A server refuses most literals that it would have to change, so few rules cut or clip.
"""

from __future__ import annotations

import struct
import unicodedata
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from ipaddress import IPv4Address, IPv6Address
from math import floor, isfinite
from uuid import UUID

from connector.ddl.column_spec import ColumnSpec
from connector.ddl.syntax.ast_column import Literal
from connector.ddl.syntax.tokens import Lexeme
from connector.ddl.syntax.type_names import BLOBS, FLOATS, INTEGERS, TEMPORALS, TEXTS
from connector.log.transaction.layout import Column
from connector.mysql.values.charsets import BINARY, WIDE
from connector.targets.ddl.characters import decoded, representable
from connector.targets.ddl.conversion_times import date, time, timestamp
from connector.targets.ddl.literals import Bytes, LiteralValue, Number, Text, literal_value, number_in
from connector.targets.ddl.session import Session
from connector.targets.operations import Value
from connector.targets.types import parse, whole_range

_EXACT = Context(prec=200)  # a DECIMAL has 65 digits
_LARGEST_EXPONENT = 100
_NOT_ASCII = (BINARY, *WIDE)
_LONGEST = 90  # digits before or after the decimal point that any rule reads


_Conversion = Callable[[ColumnSpec, LiteralValue, Session], Value]


def converted(spec: ColumnSpec, literal: Literal, session: Session) -> Value:
    """A literal as a value of a column, in the log's form; None if not known.

    Args:
        spec: the column.
        literal: the column's default.
        session: the statement's.
    """
    found = literal_value(literal, session)
    if found is None:
        return None
    if session.mariadb and "EMPTY_STRING_IS_NULL" in session.modes and isinstance(found, Text) and not found.text:
        return None
    base = parse(spec.column.type).base
    if session.mariadb and _mariadbs_own(base, literal, session):
        return None
    if spec.declared:
        return _DECLARED[spec.declared](found)
    return _CONVERSIONS[base](spec, found, session)


def _mariadbs_own(base: str, literal: Literal, session: Session) -> bool:
    """True if MariaDB converts differently from MySQL.

    MariaDB reads x'30' as a string and 0x30 as a number, keeps the default of a TEXT or BLOB as an expression in UTF-8,
    and misreads strings of wide character sets as a YEAR, and what JSON_ARRAY() returns in such a session.
    """
    if literal.computed and literal.charset and session.connection in _NOT_ASCII:
        return True
    if base in (*TEXTS, *BLOBS):
        plain = literal.text.isascii() or (base in TEXTS and session.connection not in _NOT_ASCII)
        return bool(literal.charset) or not plain or (base in BLOBS and session.connection in _NOT_ASCII)
    if base == "year" and session.connection in _NOT_ASCII:
        return literal.kind in (Lexeme.STRING, Lexeme.HEX)
    return literal.kind is Lexeme.HEX and (base in INTEGERS or base in FLOATS or base in ("decimal", "year"))


def _integer(spec: ColumnSpec, found: LiteralValue, session: Session) -> Value:
    number = _number(found, unsigned=spec.column.unsigned)
    if number is None:
        return None
    if isinstance(number, float):
        whole = int(_rounded(Decimal(number), 0, ROUND_HALF_EVEN))
    else:
        whole = int(_rounded(number, 0, ROUND_HALF_UP))
    low, high = whole_range(spec.column)
    if not low <= whole <= high:
        return None
    return whole if whole < 2**63 else str(whole)


def _decimal(spec: ColumnSpec, found: LiteralValue, session: Session) -> Value:
    number = _number(found)
    if number is None:
        return None
    exact = Decimal(repr(number)) if isinstance(number, float) else number
    digits, scale = parse(spec.column.type).sizes
    rounded = _rounded(exact, scale, ROUND_HALF_UP)
    if abs(rounded) >= Decimal(10) ** (digits - scale) or (rounded < 0 and spec.column.unsigned):
        return None
    return f"{rounded if rounded else abs(rounded):f}"


def _rounded(number: Decimal, places: int, how: str) -> Decimal:
    if number.adjusted() > _LARGEST_EXPONENT:
        return number  # too large for any type
    return number.quantize(Decimal(1).scaleb(-places), how, _EXACT)


def _float(spec: ColumnSpec, found: LiteralValue, session: Session) -> Value:
    number = _number(found, exact=False)
    if number is None:
        return None
    value = float(number)
    if len(spec.sizes) > 1:
        digits, scale = spec.sizes
        power = 10.0**scale
        if not abs(value) < 10.0 ** (digits - scale):
            return None
        value = floor(value) + round((value - floor(value)) * power) / power
    if spec.column.type == "float":
        value = single(value)
    if not isfinite(value) or (spec.column.unsigned and value < 0):
        return None
    return value


def single(value: float) -> float:
    """The nearest float of 32 bits; infinite beyond the largest."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf")


def _year(spec: ColumnSpec, found: LiteralValue, session: Session) -> Value:
    number = _number(found)
    if number is None or number != int(number):
        return None
    year = int(number)
    text = _written(found)
    if text is not None and year == 0:
        if session.connection in WIDE:
            return None  # the server counts bytes as characters: '0000' is 2000 on MySQL 9.7
        if len(text.strip(" ")) < 4:
            return 2000  # MySQL stores 0
    if 0 < year < 100:
        year += 2000 if year < 70 else 1900
    return year if year == 0 or 1901 <= year <= 2155 else None


def _bit(spec: ColumnSpec, found: LiteralValue, session: Session) -> Value:
    (bits,) = parse(spec.column.type).sizes
    if isinstance(found, Number):
        if isinstance(found.value, float) or found.value != int(found.value) or found.value < 0:
            return None
        number = int(found.value)
    else:
        raw = found.raw
        if raw is None:
            return None
        number = int.from_bytes(raw, "big")
    return number.to_bytes((bits + 7) // 8, "big") if number < 2**bits else None


def _text(spec: ColumnSpec, found: LiteralValue, session: Session) -> Value:
    kind = parse(spec.column.type)
    text = _characters(spec.column, found)
    if text is None:
        return None
    if kind.base in TEXTS:
        return text
    (length,) = kind.sizes
    if text[length:].strip(" "):
        return None
    return text[:length].rstrip(" ") if kind.base == "char" else text[:length]


def _bytes(spec: ColumnSpec, found: LiteralValue, session: Session) -> Value:
    kind = parse(spec.column.type)
    if isinstance(found, Number):
        text = _printed(found)
        raw = None if text is None else text.encode()
    else:
        raw = found.raw
    if raw is None or kind.base in BLOBS:
        return raw
    (length,) = kind.sizes
    if len(raw) > length:
        return None
    return raw.ljust(length, b"\0") if kind.base == "binary" else raw


def _enum(spec: ColumnSpec, found: LiteralValue, session: Session) -> Value:
    if not isinstance(found, Number):
        return _label(spec, _characters(spec.column, found))
    labels, number = spec.column.labels, found.value
    if isinstance(number, float) or number != number.to_integral_value():
        return None
    label = labels[int(number) - 1] if 1 <= number <= len(labels) else None
    # MariaDB and MySQL 5.6 take the index of the label, later MySQLs its text.
    return label if session.mariadb or label == f"{number:f}" else None


def _set(spec: ColumnSpec, found: LiteralValue, session: Session) -> Value:
    text = None if isinstance(found, Number) else _characters(spec.column, found)
    if not text:
        return text
    wanted = [_label(spec, part) for part in text.split(",")]
    return (
        None if None in wanted or "" in wanted else ",".join(label for label in spec.column.labels if label in wanted)
    )


def _label(spec: ColumnSpec, text: str | None) -> str | None:
    """The label that a text matches; None if several labels may be equal in the collation."""
    if text is None:
        return None
    labels, text = spec.column.labels, text.rstrip(" ")
    if spec.collation.endswith("_bin") or spec.column.charset == "binary":
        return text if text in labels else None
    alike = [label for label in labels if _loosely(label) == _loosely(text)]
    if len(alike) != 1:
        return None
    same_case = alike[0] == text or (alike[0].isascii() and text.isascii())
    return alike[0] if same_case else None


def _loosely(text: str) -> str:
    """A text without case and accents."""
    apart = unicodedata.normalize("NFKD", text)
    return "".join(char for char in apart if not unicodedata.combining(char)).casefold()


def _date(spec: ColumnSpec, found: LiteralValue, session: Session) -> Value:
    return date(found, session)


def _time(spec: ColumnSpec, found: LiteralValue, session: Session) -> Value:
    return time(spec.column, found, session)


def _datetime(spec: ColumnSpec, found: LiteralValue, session: Session) -> Value:
    return timestamp(spec.column, found, session)


def _json(spec: ColumnSpec, found: LiteralValue, session: Session) -> Value:
    """Documents that a server prints unchanged."""
    text = found.text if isinstance(found, Text) else ""
    return text if text in ("{}", "[]", "null", "true", "false") else None


def _unknown(spec: ColumnSpec, found: LiteralValue, session: Session) -> Value:
    return None


def _characters(column: Column, found: LiteralValue) -> str | None:
    if isinstance(found, Number):
        wide = column.charset in WIDE  # a server stores ASCII bytes there
        return None if wide and isinstance(found.value, float) else _printed(found)
    if isinstance(found, Bytes):
        return decoded(found.raw, column.charset)
    return found.text if not found.type and representable(found.text, column.charset) else None


def _printed(number: Number) -> str | None:
    """A number as text; None for a double that a server may print with an exponent."""
    value = number.value
    if isinstance(value, float):
        if value and not 1e-7 <= abs(value) < 1e15:
            return None
        exact = Decimal(repr(value))
        return f"{exact.to_integral_value() if exact == exact.to_integral_value() else exact:f}"
    return f"{value:f}"


def _number(found: LiteralValue, *, exact: bool = True, unsigned: bool = False) -> Decimal | float | None:
    """The number of a literal. A string with an exponent is exact, too, unless a double is needed."""
    if isinstance(found, Bytes) and found.numeric:
        number = int.from_bytes(found.raw, "big")
        return Decimal(number) if number < 2**63 or unsigned else None
    if isinstance(found, Number):
        value = found.value
    else:
        text = number_in(_written(found) or "")
        if text is None:
            return None
        value = Decimal(text) if exact else float(text)
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if not value or abs(value.adjusted()) < _LONGEST else None


def _written(found: LiteralValue) -> str | None:
    """The characters of a string, of a binary one too; None: it is a number."""
    if isinstance(found, Bytes) and not found.numeric:
        return found.raw.decode("ascii", "replace")
    return found.text if isinstance(found, Text) else None


def _uuid(found: LiteralValue) -> Value:
    text = found.text if isinstance(found, Text) else ""
    try:
        return UUID(text).bytes if len(text) == 36 else None
    except ValueError:
        return None


def _inet(kind: type[IPv4Address] | type[IPv6Address]) -> Callable[[LiteralValue], Value]:
    def read(found: LiteralValue) -> Value:
        try:
            return kind(found.text).packed if isinstance(found, Text) else None
        except ValueError:
            return None

    return read


_DECLARED: dict[str, Callable[[LiteralValue], Value]] = {
    "uuid": _uuid,
    "inet4": _inet(IPv4Address),
    "inet6": _inet(IPv6Address),
}
_CONVERSIONS: dict[str, _Conversion] = {
    **dict.fromkeys(INTEGERS, _integer),
    **dict.fromkeys(FLOATS, _float),
    "decimal": _decimal,
    "year": _year,
    "bit": _bit,
    **dict.fromkeys(("char", "varchar", *TEXTS), _text),
    **dict.fromkeys(("binary", "varbinary", *BLOBS), _bytes),
    "enum": _enum,
    "set": _set,
    "date": _date,
    "time": _time,
    **dict.fromkeys((kind for kind in TEMPORALS if kind != "time"), _datetime),
    "json": _json,
    **dict.fromkeys(("geometry", "vector"), _unknown),
}
