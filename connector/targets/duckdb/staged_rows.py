"""Rows of the log as Arrow tables, which DuckDB reads as they are; statements name them as tables.

Numbers, texts and bytes have their own form there; the others are texts that DuckDB converts (`types.typed`). A value
that its column cannot have is found after the statement has failed, and is named with its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from types import NoneType
from typing import Any, Final

import duckdb
import pyarrow as pa

from connector.errors import ValueNotRepresentable
from connector.log.compact.net_changes import Images
from connector.log.transaction.layout import Column, TableLayout
from connector.targets.duckdb.errors import connector_error
from connector.targets.duckdb.file import FileSession
from connector.targets.duckdb.literals import bits
from connector.targets.duckdb.types import Form, duckdb_type, form_of, typed
from connector.targets.operations import Value
from connector.targets.target_schema import go_on_without
from connector.targets.values import rows as decoded

_ARROW: Final = {
    Form.WHOLE: (pa.int64(), int),
    Form.UNSIGNED: (pa.uint64(), int),
    Form.REAL: (pa.float64(), float),
    Form.TEXT: (pa.string(), str),
    Form.BITS: (pa.string(), bytes),
    Form.BYTES: (pa.binary(), bytes),
}
_DATES: Final = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
_YEAR_ZERO: Final = "0000-"  # which DuckDB would take for a year before Christ


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows of one table.

    Args:
        layout: the table's, for errors.
        columns: the column of each value.
        names: the name of each value in SQL.
        values: the rows.
    """

    layout: TableLayout
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    values: list[tuple[Value, ...]]

    def __len__(self) -> int:
        return len(self.values)

    def query(self, name: str) -> str:
        """The query for the rows, in the columns' types; with `n`, their number."""
        return f"(SELECT {', '.join(self._typed())}, n FROM {name})"

    def key(self, row: int) -> str:
        """The key of a row, or the whole row if the table has none, as text for errors."""
        place = {name: index for index, name in enumerate(self.names)}
        shown = self.layout.key or range(len(self.layout.columns))
        values = (
            (self.layout.columns[index].name, self.values[row][place[f"c{index}"]])
            for index in shown
            if f"c{index}" in place
        )
        return ", ".join(f"{column}={value!r:.100}" for column, value in values)

    def unfit(self, connection: duckdb.DuckDBPyConnection, error: duckdb.Error) -> ValueNotRepresentable | None:
        """The error for a value that DuckDB has refused; None if it is none of these.

        Args:
            connection: to any database.
            error: DuckDB's.
        """
        connection.register("thl_unfit", self.arrow())
        for index, (column, name) in enumerate(zip(self.columns, self.names, strict=True)):
            sql = f"{name} IS NOT NULL AND {typed(column, name, attempt=True)} IS NULL"
            found = connection.execute(f"SELECT min(n) FROM thl_unfit WHERE {sql}").fetchall()
            if found[0][0] is not None:
                return self._unfit(int(found[0][0]), index, f"DuckDB's {duckdb_type(column)} lacks", error)
        return None

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table.

        Raises:
            ValueNotRepresentable: a value is of another kind than its column.
        """
        found: dict[str, pa.Array[Any]] = {}
        for index, (column, name) in enumerate(zip(self.columns, self.names, strict=True)):
            found[name] = self._array(index, column, list(map(itemgetter(index), self.values)))
        found["n"] = pa.array(range(len(self.values)), pa.int64())
        return pa.table(found)

    def _typed(self) -> Iterator[str]:
        for column, name in zip(self.columns, self.names, strict=True):
            yield f"{typed(column, name)} AS {name}"

    def _array(self, index: int, column: Column, values: Sequence[Value]) -> pa.Array[Any]:
        form = form_of(column)
        kind, plain = _ARROW[form]
        if form is Form.UNSIGNED:  # above 2^63 the log has text
            values = [int(value) if isinstance(value, str) and value.isdecimal() else value for value in values]
        if other := set(map(type, values)) - {plain, NoneType}:
            row = next(row for row, value in enumerate(values) if type(value) in other)
            raise self._unfit(row, index, f"is no {duckdb_type(column)}", None)
        if duckdb_type(column) in _DATES:
            for row, value in enumerate(values):
                if isinstance(value, str) and value.startswith(_YEAR_ZERO):
                    raise self._unfit(row, index, f"DuckDB's {duckdb_type(column)} lacks", None)
        if form is Form.BITS:
            values = [bits(column, value) if isinstance(value, bytes) else value for value in values]
        try:
            return pa.array(values, kind)
        except OverflowError as error:  # of whole numbers
            row = next(row for row, value in enumerate(values) if isinstance(value, int) and not 0 <= value < 1 << 64)
            raise self._unfit(row, index, f"DuckDB's {duckdb_type(column)} lacks", None) from error

    def _unfit(self, row: int, index: int, what: str, error: duckdb.Error | None) -> ValueNotRepresentable:
        column, value = self.columns[index], self.values[row][index]
        hint = (
            f"DuckDB cannot store this value, and it is in the log already; {go_on_without(self.layout.name)}; changes "
            "of the source or of source.filters affect later events only"
        )
        if duckdb_type(column) in _DATES and "00" in str(value)[:10].split("-")[1:]:
            hint += (
                ': for a whole table, zero_dates: ["*"] in its rule of source.filters.tables publishes NULL for such '
                "dates, with a new `service`, which is another log with another initial load, and an empty target"
            )
        made = ValueNotRepresentable(
            f"a column has the value {value!r:.200}, which {what}",
            hint=hint,
            table=self.layout.name,
            column=column.name,
            row=self.key(row),
        )
        made.__cause__ = error
        return made


def staged(layout: TableLayout, images: Images, selected: Sequence[int] | None = None) -> StagedRows:
    """The values of whole images, under the names c0, c1 …

    Args:
        layout: of the images.
        images: the images.
        selected: the indexes of the columns; None: all.
    """
    indexes = range(len(layout.columns)) if selected is None else selected
    values = decoded(images.data, images.ends, len(layout.columns), None if selected is None else list(selected))
    return StagedRows(
        layout, tuple(layout.columns[index] for index in indexes), tuple(f"c{index}" for index in indexes), values
    )


@contextmanager
def named(session: FileSession, **rows: StagedRows) -> Iterator[None]:
    """Give rows names in SQL, within the context; name the value if DuckDB refuses one.

    Raises:
        ValueNotRepresentable: a value that its column cannot have.
    """
    for name, one in rows.items():
        session.connection.register(name, one.arrow())
    try:
        yield
    except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
        with session.connection.cursor() as other:  # the transaction is aborted
            for one in rows.values():
                if found := one.unfit(other, error):
                    raise found from error
        raise connector_error(error) from error
    for name in rows:
        session.connection.unregister(name)
