"""Values of new columns in existing rows (MySQL's manual, "Data Type Default Values" and "ALTER TABLE").

Values have the log's form. A value that is not certain is `Unknowable`, which is an error unless the table is empty.
Absent columns of partial row images get the same values (`default_values`).
"""

from __future__ import annotations

from decimal import Decimal

from connector.ddl.column_spec import ColumnSpec
from connector.ddl.syntax.ast_column import Computed, Literal, Now, Null
from connector.ddl.syntax.type_names import BLOBS, FLOATS, INTEGERS, TEMPORALS, TEXTS
from connector.log.transaction.layout import Column
from connector.targets.ddl.conversion_times import now
from connector.targets.ddl.conversions import converted, single
from connector.targets.ddl.session import Session
from connector.targets.operations import Filled, Unknowable, Value
from connector.targets.types import fraction, parse

_ZERO_TIMES = {"time": "00:00:00", "datetime": "0000-00-00 00:00:00", "timestamp": "0000-00-00 00:00:00"}


def fill(spec: ColumnSpec, session: Session) -> Filled | Unknowable:
    """The value of a new column in existing rows.

    Args:
        spec: the column.
        session: the statement's; it gives literals and CURRENT_TIMESTAMP their values.
    """
    column = spec.column
    if spec.counted:
        return Unknowable(f"the source numbers column {column.name}")
    if session.implicit and _lacks_default(spec):
        return Unknowable(f"TIMESTAMP column {column.name} has a default of explicit_defaults_for_timestamp=OFF")
    match spec.default:
        case Computed():
            return Unknowable(f"the source computes column {column.name}")
        case Null() if column.nullable:
            return Filled(None)
        case Null():
            return Unknowable(f"column {column.name} is NOT NULL and has NULL as its default")
        case None:
            return Filled(None) if column.nullable else _implicit(column)
        case Literal(text="", computed=False) if _ignored(column, session):
            return Filled(None) if column.nullable else _implicit(column)  # the server warns and sets no default
        case Now() as current:
            value: Value = now(column, current, session)
            why = f"has the time of a session in time zone {session.zone or 'not known'}"
        case Literal() as literal:
            value = converted(spec, literal, session)
            why = f"of type {column.type} has default {literal.text!r}, whose value here only the source knows"
    return Unknowable(f"column {column.name} {why}") if value is None else Filled(value)


def _lacks_default(spec: ColumnSpec) -> bool:
    """True for a TIMESTAMP with neither NULL nor a default in its definition."""
    explicit = spec.null or isinstance(spec.default, Literal | Now | Computed)
    return parse(spec.column.type).base == "timestamp" and not explicit


def _ignored(column: Column, session: Session) -> bool:
    """True if a server warns of DEFAULT '' and ignores it."""
    return not session.mariadb and parse(column.type).base in (*TEXTS, *BLOBS)


def default(spec: ColumnSpec, session: Session) -> Filled | None:
    """The value of a column in an insert without it; None if the source computes it or it is not certain.

    Args:
        spec: the column.
        session: the definition's.
    """
    if spec.generated or isinstance(spec.default, Now):
        return None
    found = fill(spec, session)
    if not isinstance(found, Filled):
        return None
    # A server prints a FLOAT's default with six digits and keeps these, once another ALTER has read it back.
    if spec.column.type == "float" and isinstance(found.value, float):
        return found if single(float(f"{found.value:.6g}")) == found.value else None
    return found


def _implicit(column: Column) -> Filled | Unknowable:
    """The value of a NOT NULL column without a default."""
    kind = parse(column.type)
    if kind.base in INTEGERS or kind.base == "year":
        return Filled(0)
    if kind.base in FLOATS:
        return Filled(0.0)
    if kind.base == "decimal":
        return Filled(f"{Decimal(0).scaleb(-kind.sizes[1]):f}")
    if kind.base == "date":
        return Filled("0000-00-00")
    if kind.base in TEMPORALS:
        return Filled(_ZERO_TIMES[kind.base] + _fraction_zeros(column))
    if kind.base == "bit":
        return Filled(bytes((kind.sizes[0] + 7) // 8))
    if kind.base == "binary":
        return Filled(bytes(kind.sizes[0]))
    if kind.base in ("varbinary", "vector", *BLOBS):
        return Filled(b"")
    if kind.base in ("char", "varchar", "set") or kind.base in TEXTS:
        return Filled("")
    if kind.base == "enum":
        return Filled(column.labels[0])
    if kind.base == "json":
        return Filled("null")
    return Unknowable(f"column {column.name} of type {column.type} has no default")


def _fraction_zeros(column: Column) -> str:
    places = fraction(column)
    return "." + "0" * places if places else ""
