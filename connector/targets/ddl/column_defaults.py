"""Values of new columns in existing rows (MySQL's manual, "Data Type Default Values" and "ALTER TABLE").

Values have the log's form. A value that is not certain is `UnknownValue`, which is an error unless the table is empty.
Absent columns of partial row images get the same values (`default_values`).
"""

from __future__ import annotations

from decimal import Decimal

from connector.ddl.column_spec import ColumnSpec
from connector.ddl.syntax.ast_column import Computed, Default, Literal, Now, Null
from connector.ddl.syntax.type_names import BLOBS, FLOATS, INTEGERS, TEMPORALS, TEXTS
from connector.log.transaction.layout import Column
from connector.targets.ddl.conversion_times import now
from connector.targets.ddl.conversions import converted, single
from connector.targets.ddl.session import Session
from connector.targets.operations import KnownValue, UnknownValue, Value
from connector.targets.types import fraction, parse

_ZERO_TIMES = {"time": "00:00:00", "datetime": "0000-00-00 00:00:00", "timestamp": "0000-00-00 00:00:00"}


def fill(spec: ColumnSpec, session: Session) -> KnownValue | UnknownValue:
    """The value of a new column in existing rows.

    Args:
        spec: the column.
        session: the statement's; it gives literals and CURRENT_TIMESTAMP their values.
    """
    column = spec.column
    if spec.counted:
        return UnknownValue(f"the source numbers column {column.name}")
    if session.implicit and _lacks_default(spec):
        return UnknownValue(f"TIMESTAMP column {column.name} has a default of explicit_defaults_for_timestamp=OFF")
    match spec.default:
        case Computed():
            return UnknownValue(f"the source computes column {column.name}")
        case Null() if column.nullable:
            return KnownValue(None)
        case Null():
            return UnknownValue(f"column {column.name} is NOT NULL and has NULL as its default")
        case None:
            return KnownValue(None) if column.nullable else _implicit(column)
        case Literal(text="", computed=False) if _ignored(column, session):
            return KnownValue(None) if column.nullable else _implicit(column)  # the server warns and sets no default
        case Now() as current:
            value: Value = now(column, current, session)
            why = f"has the time of a session in time zone {session.zone or 'not known'}"
        case Literal() as literal:
            value = converted(spec, literal, session)
            why = f"of type {column.type} has default {literal.text!r}, whose value here only the source knows"
    return UnknownValue(f"column {column.name} {why}") if value is None else KnownValue(value)


def _lacks_default(spec: ColumnSpec) -> bool:
    """True for a TIMESTAMP with neither NULL nor a default in its definition."""
    explicit = spec.null or isinstance(spec.default, Literal | Now | Computed)
    return parse(spec.column.type).base == "timestamp" and not explicit


def _ignored(column: Column, session: Session) -> bool:
    """True if a server warns of DEFAULT '' and ignores it."""
    return not session.mariadb and parse(column.type).base in (*TEXTS, *BLOBS)


def default(spec: ColumnSpec, session: Session) -> KnownValue | None:
    """The value of a column in an insert without it; None if the source computes it or it is not certain.

    Args:
        spec: the column.
        session: the definition's.
    """
    if spec.generated or isinstance(spec.default, Now):
        return None
    found = fill(spec, session)
    if not isinstance(found, KnownValue):
        return None
    # A server prints a FLOAT's default with six digits and keeps these, once another ALTER has read it back.
    if spec.column.type == "float" and isinstance(found.value, float):
        return found if single(float(f"{found.value:.6g}")) == found.value else None
    return found


def declares(spec: ColumnSpec, session: Session) -> bool:
    """True if a definition has a default that a target's column can have.

    It is a constant whose value is certain, or, for a TIMESTAMP, the current time with all its digits. A DATETIME's is
    that of a session's time zone.
    """
    match spec.default:
        case Literal(text="", computed=False) if _ignored(spec.column, session):
            return False
        case Literal():
            return default(spec, session) is not None
        case Now(places, day):
            return parse(spec.column.type).base == "timestamp" and not day and places == fraction(spec.column)
    return False


def respecified(column: Column, said: Default | None, session: Session) -> ColumnSpec | None:
    """The definition of a column with the default that ALTER COLUMN sets.

    Returns:
        None if the value depends on what is not known of the column: FLOAT(7,2), and MariaDB's types that are stored
        as bytes.
    """
    base = parse(column.type).base
    if said is None or base in FLOATS or (session.mariadb and base == "binary"):
        return None
    return ColumnSpec(column, said, generated=False, primary=False, inexact=False, counted=False, null=column.nullable)


def _implicit(column: Column) -> KnownValue | UnknownValue:
    """The value of a NOT NULL column without a default."""
    kind = parse(column.type)
    if kind.base in INTEGERS or kind.base == "year":
        return KnownValue(0)
    if kind.base in FLOATS:
        return KnownValue(0.0)
    if kind.base == "decimal":
        return KnownValue(f"{Decimal(0).scaleb(-kind.sizes[1]):f}")
    if kind.base == "date":
        return KnownValue("0000-00-00")
    if kind.base in TEMPORALS:
        return KnownValue(_ZERO_TIMES[kind.base] + _fraction_zeros(column))
    if kind.base == "bit":
        return KnownValue(bytes((kind.sizes[0] + 7) // 8))
    if kind.base == "binary":
        return KnownValue(bytes(kind.sizes[0]))
    if kind.base in ("varbinary", "vector", *BLOBS):
        return KnownValue(b"")
    if kind.base in ("char", "varchar", "set") or kind.base in TEXTS:
        return KnownValue("")
    if kind.base == "enum":
        return KnownValue(column.labels[0])
    if kind.base == "json":
        return KnownValue("null")
    return UnknownValue(f"column {column.name} of type {column.type} has no default")


def _fraction_zeros(column: Column) -> str:
    places = fraction(column)
    return "." + "0" * places if places else ""
