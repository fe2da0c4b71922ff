"""What MySQL gives to existing rows when a column is added (manual, "Data Type Default Values", "ALTER TABLE").

Values are said as the log says them. Whatever cannot be known for certain is `Unknowable`, which stops on a table
that is not empty. The same values stand for absent columns of partial row images (`completing`).
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
    """The value of a new column in rows that are already there.

    Args:
        spec: the column.
        session: the statement's: what its literals and CURRENT_TIMESTAMP are.
    """
    column = spec.column
    if spec.counted:
        return Unknowable(f"the source numbers column {column.name}")
    if session.implicit and _untold(spec):
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
            return Filled(None) if column.nullable else _implicit(column)  # a warning, and no default
        case Now() as moment:
            value: Value = now(column, moment, session)
            why = f"has the time of a session in time zone {session.zone or 'not known'}"
        case Literal() as literal:
            value = converted(spec, literal, session)
            why = f"of type {column.type} has default {literal.text!r}, whose value here only the source knows"
    return Unknowable(f"column {column.name} {why}") if value is None else Filled(value)


def _untold(spec: ColumnSpec) -> bool:
    """Whether a TIMESTAMP is said to have neither NULL nor a default."""
    said = spec.null or isinstance(spec.default, Literal | Now | Computed)
    return parse(spec.column.type).base == "timestamp" and not said


def _ignored(column: Column, session: Session) -> bool:
    """Whether a server warns of DEFAULT '' and forgets it."""
    return not session.mariadb and parse(column.type).base in (*TEXTS, *BLOBS)


def default(spec: ColumnSpec, session: Session) -> Filled | None:
    """What a column has in a new row that gives it no value; None where the source computes it, or it is not certain.

    Args:
        spec: the column.
        session: the definition's.
    """
    if spec.generated or isinstance(spec.default, Now):
        return None
    found = fill(spec, session)
    if not isinstance(found, Filled):
        return None
    # A server keeps a FLOAT's default as it prints it: with six digits, once another ALTER has read it again.
    if spec.column.type == "float" and isinstance(found.value, float):
        return found if single(float(f"{found.value:.6g}")) == found.value else None
    return found


def _implicit(column: Column) -> Filled | Unknowable:
    """What a NOT NULL column without a default gets."""
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
