"""Formats a transaction of a binary log in Tungsten's layout: one fragment per batch, as `thl list`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from connector.errors import escaped
from connector.inspect.formats.tungsten import ROW, header_lines, rows_head, statements, value_head
from connector.inspect.formats.tungsten_rows import TungstenRows
from connector.log.ids import Kind, Seqno
from connector.log.transaction.batch import Rows, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.event_id import EventId
from connector.log.transaction.layout import TableLayout
from connector.log.transaction.rows_query import RowsQueries

KEPT: Final = 4096  # layouts


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """A batch as a fragment without changes: a `connector.inspect.formats.tungsten.ListedFragment`.

    Args:
        place: the file.
        fragment: the fields of schemas/fragment.avsc that the layout shows.
        voided: always False.
    """

    place: str
    fragment: dict[str, Any]
    voided: bool = False


class TungstenPrinter:
    """Formats transactions: a `connector.inspect.transactions.Formatter`.

    Without a producer there is no epoch, so it is 0; the source is shown by its server id.
    """

    def __init__(self) -> None:
        # By identity: hashing a layout means hashing every column. The layout is kept, so its id stays its own.
        self._tables: dict[int, tuple[TableLayout, TungstenRows]] = {}
        self._begin: TransactionStart | None = None
        self._fragno = 0
        self._queries = RowsQueries()

    def begin(self, begin: TransactionStart) -> None:
        """Begin a transaction."""
        self._begin, self._fragno, self._queries = begin, 0, RowsQueries()

    def batch(self, seqno: Seqno, batch: TransactionBatch, xa: str = "") -> bytes:
        """A fragment; facts of the transaction's end are null before the last one."""
        begin, ending = self._begin, batch.ending
        if begin is None:
            raise ValueError("a batch of a transaction that has not begun")
        fragment: dict[str, Any] = {
            "seqno": seqno,
            "fragno": self._fragno,
            "last_frag": ending is not None,
            "commit_time": ending and ending.commit_time,
            "epoch": 0,
            "event_id": ending and str(EventId(ending.end.file, ending.end.offset, begin.thread_id)),
            "source_id": begin.server_id,
            "thread_id": begin.thread_id,
            "outcome": ending and ending.outcome.name.lower(),
            "metadata": {
                "mysql_server_id": begin.server_id,
                "dbms_type": "mysql",
                "tz_aware": "true",
                **({"unsafe_for_block_commit": ""} if begin.kind is Kind.DDL else {}),
                **begin.metadata,
                **({"xa": xa} if xa else {}),
                **dict(self._queries.metadata(batch.changes)),
            },
        }
        self._fragno += 1
        found = [_lines(header_lines(BatchHeader(begin.start.file, fragment)))]
        schema: str | None = None
        number = 0
        for change in batch.changes:
            if isinstance(change, Rows):
                name, schema = change.layout.name, None
                found.append(_lines(rows_head(number, change.action.name, name.schema, name.table)))
                found.append(self._rows(change.layout).printed(change.data, change.ends, change.before, change.after))
            else:
                texts = statements(number, change.schema, change.sql, change.options, before=schema)
                found += map(_lines, texts)
                number += len(texts) - 1
                schema = change.schema
            number += 1
        return b"".join(found)

    def header(self, seqno: Seqno, ending: TransactionEnd, xa: str = "") -> bytes:
        """Return b"": every fragment has its own header."""
        del seqno, ending, xa
        return b""

    def footer(self) -> bytes:
        """Return b""."""
        return b""

    def end(self) -> bytes:
        """Return b""."""
        return b""

    def _rows(self, layout: TableLayout) -> TungstenRows:
        kept = self._tables.get(id(layout))
        if kept is None:
            if len(self._tables) >= KEPT:
                self._tables.clear()
            kept = self._tables[id(layout)] = layout, _printer(layout)
        return kept[1]


def _printer(layout: TableLayout) -> TungstenRows:
    names = [column.name for column in layout.columns]
    columns, keys = (
        [value_head(word, f"{index + 1}: {escaped(name)}").encode() for index, name in enumerate(names)]
        for word in ("COL", "KEY")
    )
    return TungstenRows(ROW.encode(), columns, keys, [index in layout.key for index in range(len(names))])


def _lines(found: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in found).encode()
