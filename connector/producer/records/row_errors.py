"""The errors of rows that cannot be completed: the table, the cause, and the remedy by its option's name."""

from __future__ import annotations

from typing import Final

from connector.errors import ConnectorError, RecordsDamaged, Unsupported
from connector.log.transaction.layout import TableLayout
from connector.producer.records.conversion import split, value_of
from connector.producer.records.row_completer import DifferencesFailed, KeyMissing, UnknownDefault, UnknownRow
from connector.records.database import REBUILD
from connector.targets.operations import Value

SHOWN: Final = 100  # characters of a key in an error
PARTIAL: Final = "source.records.partial"
UNTIL: Final = f"until the load has ended, as where {PARTIAL} names the table"
DIFFERS: Final = "has a JSON document as differences (binlog_row_value_options)"
WHOLE_DOCUMENTS: Final = "SET GLOBAL binlog_row_value_options = '' on the source"
LEFT_OUT: Final = "leave the table out with source.filters.ignore: captured again afterwards, it is loaded"


def unknown_row(layout: TableLayout, error: UnknownRow, reason: str, where: dict[str, object]) -> Unsupported:
    """The error of an image of a row that the store does not know.

    Args:
        layout: the table.
        error: the row.
        reason: why it is not known; "": the store does not say.
        where: the ids of the event.
    """
    values = split(error.key, len(layout.key))
    shown = ", ".join(
        f"{layout.columns[at].name}={_shown(value_of(one))}" for at, one in zip(layout.key, values, strict=True)
    )
    lacks, until, option = "lacks columns", f"images of such rows stay partial {UNTIL}", "binlog_row_image = FULL"
    if error.differs:
        lacks, until, option = (
            DIFFERS,
            "such rows are published as deletes until it brings them",
            "binlog_row_value_options = ''",
        )
    return Unsupported(
        f"an image of {layout.name} {lacks}, and the record store does not know the row{reason and f': {reason}'}",
        hint=f"thl load {layout.name}, and start the producer again: {until}. SET GLOBAL {option} on the source "
        "helps later changes alone",
        table=layout.name,
        key=shown[:SHOWN],
        **where,
    )


def unknown_default(layout: TableLayout, error: UnknownDefault, where: dict[str, object]) -> Unsupported:
    """The error of an inserted row that lacks a column whose default is not known."""
    column = layout.columns[error.column].name
    return Unsupported(
        f"an insert into {layout.name} has no value for column {column}, and its default is not known",
        hint=f"thl load {layout.name}, and start the producer again: such rows stay partial until its load, "
        f"from which on the definition is known, as where {PARTIAL} names the table. SET GLOBAL "
        "binlog_row_image = FULL on the source helps later inserts alone",
        table=layout.name,
        column=column,
        **where,
    )


def key_missing(layout: TableLayout, error: KeyMissing, where: dict[str, object]) -> Unsupported:
    """The error of an image that lacks a column of its key."""
    return Unsupported(
        f"{error}, by which the record store would know the row",
        hint=f"let {PARTIAL} name the table: its images may stay partial then. A primary key, or SET GLOBAL "
        "binlog_row_image = FULL on the source, helps later changes alone",
        table=layout.name,
        **where,
    )


def differences_failed(layout: TableLayout, error: DifferencesFailed, where: dict[str, object]) -> ConnectorError:
    """The error of differences of a JSON document: the store is damaged if they do not fit the document that it has."""
    ids = {"table": layout.name, "column": layout.columns[error.column].name, **error.cause.where, **where}
    if isinstance(error.cause, Unsupported):
        return Unsupported(error.cause.message, hint=f"{LEFT_OUT}; with {WHOLE_DOCUMENTS}", **ids)
    return RecordsDamaged(
        f"differences of a JSON document contradict the record store: {error.cause.message}",
        hint=f"{REBUILD}; if they contradict that, too, {LEFT_OUT}",
        **ids,
    )


def damaged_rows(layout: TableLayout, error: ValueError, where: dict[str, object]) -> RecordsDamaged:
    """The error of versions that are no rows of their table."""
    return RecordsDamaged(f"rows of the record store cannot be read: {error}", hint=REBUILD, table=layout.name, **where)


def _shown(value: Value) -> str:
    """A value of a key in an error: a number. Texts may be secrets, and errors are logged."""
    return str(value) if isinstance(value, int) else "…"
