"""A transaction as one JSON object on one line.

`{"seqno", "event_id", "gtid", "server_id", "commit_time", "kind", "shard", "changes": […]}`, with
`"outcome": "rollback"` where changes to tables without transactions are all that is left of it. A change is the rows
of one table and action (with `"rows_query"`, the text of the statement that made them, where that was logged), or a
statement `{"schema", "sql", "options": {…}}`, whose options are to be set in their order.
Values are exact: a 64-bit integer is a number with all its digits, a float or double the shortest one that reads back
the same, a decimal or a time the text that MySQL prints, bytes are `{"base64": "…"}`. Rows of one table and action
that follow each other are one change, in any number of batches.
A column that is not in an image (binlog_row_image) is not in its object; it is not null.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from json.encoder import encode_basestring as text  # a string of JSON, not cut down to ASCII
from typing import Final

from connector.inspect.formats.json_rows import JsonRows
from connector.log.format.shard import shard_of
from connector.log.ids import UNKNOWN_SHARD, Action, Kind, Outcome, Seqno
from connector.log.transaction.batch import Rows, Statement, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.event_id import EventId
from connector.log.transaction.layout import Column, TableLayout
from connector.log.transaction.statement_options import SAVEPOINTS
from connector.log.transaction.xa import XID

KEPT: Final = 4096  # layouts
KINDS: Final = {kind.value: kind.name.lower() for kind in Kind}


class JsonPrinter:
    """Formats transactions as JSON lines: a `connector.inspect.transactions.Formatter`."""

    def __init__(self) -> None:
        # By identity: hashing a layout means hashing every column. The layout is kept, so its id stays its own.
        self._tables: dict[int, _TableText] = {}
        self._begin: TransactionStart | None = None
        self._open: tuple[TableLayout, Action, str | None] | None = None  # the change whose rows may continue
        self._between = b""  # text before the next change
        self._schemas: set[str] = set()

    def begin(self, begin: TransactionStart) -> None:
        """Begin a transaction."""
        self._begin, self._open, self._between = begin, None, b""
        self._schemas.clear()

    def batch(self, seqno: Seqno, batch: TransactionBatch, xa: str = "") -> bytes:
        """Format a batch's changes; the last one stays open, because its rows may continue in the next batch."""
        del seqno, xa
        found: list[bytes] = []
        for change in batch.changes:
            if isinstance(change, Rows):
                self._rows(change, found)
            else:
                self._end(found)
                if not change.sql.startswith(SAVEPOINTS):
                    self._schemas.add("")
                found += self._between, _statement(change)
                self._between = b","
        return b"".join(found)

    def header(self, seqno: Seqno, ending: TransactionEnd, xa: str = "") -> bytes:
        """The beginning of the line: facts of the transaction."""
        begin = self._begin
        if begin is None:
            raise ValueError("a transaction ends that has not begun")
        shard = shard_of(self._schemas) if begin.kind is Kind.TRANSACTION else UNKNOWN_SHARD
        event_id = str(EventId(ending.end.file, ending.end.offset, begin.thread_id))
        gtid = "null" if begin.gtid is None else text(begin.gtid)
        kind = "xa" if xa else KINDS[int(begin.kind)]
        xid = f'"xid":{text(begin.metadata[XID])},' if XID in begin.metadata else ""
        became = xa or ("" if ending.outcome is Outcome.COMMIT else ending.outcome.name.lower())
        second, fraction = divmod(ending.commit_time, 1_000_000)
        outcome = f'"outcome":"{became}",' if became else ""
        return (
            f'{{"seqno":{seqno},"event_id":{text(event_id)},"gtid":{gtid},"server_id":{begin.server_id},'
            f'"commit_time":"{second_text(second)}.{fraction:06}Z",'
            f'"kind":"{kind}",{xid}"shard":{text(shard)},{outcome}"changes":['
        ).encode()

    def footer(self) -> bytes:
        """The end of the line."""
        return b"]}\n" if self._open is None else b"]}]}\n"

    def end(self) -> bytes:
        """Return b""."""
        return b""

    def _rows(self, change: Rows, found: list[bytes]) -> None:
        table = self._tables.get(id(change.layout))
        if table is None:
            if len(self._tables) >= KEPT:
                self._tables.clear()
            table = self._tables[id(change.layout)] = _TableText(change.layout)
        if self._goes_on(change):
            found.append(b",")
        else:
            self._end(found)
            self._open = change.layout, change.action, change.query
            self._schemas.add(change.layout.name.schema)
            beginning = table.heads[change.action]
            found += self._between, beginning if change.query is None else _asked(change.query, beginning)
            self._between = b","
        found.append(table.rows.printed(change.data, change.ends, change.before, change.after))

    def _goes_on(self, change: Rows) -> bool:
        """True if its rows continue the open change."""
        if self._open is None:
            return False
        layout, action, query = self._open
        return action is change.action and query == change.query and layout == change.layout

    def _end(self, found: list[bytes]) -> None:
        if self._open is not None:
            found.append(b"]}")
            self._open = None


class _TableText:
    """The parts that all changes of a table share."""

    __slots__ = ("heads", "layout", "rows")

    def __init__(self, layout: TableLayout) -> None:
        columns = ",".join(
            f'{{"name":{text(column.name)},"type":{text(type_of(column))}}}' for column in layout.columns
        )
        self.layout = layout
        self.heads = [  # by the action's number
            (
                f'{{"schema":{text(layout.name.schema)},"table":{text(layout.name.table)},"action":"{action.name}",'
                f'"columns":[{columns}],"rows":['
            ).encode()
            for action in sorted(Action)
        ]
        self.rows = JsonRows(
            [f"{text(column.name)}:".encode() for column in layout.columns],
            [column.type == "bigint" and column.unsigned for column in layout.columns],
            [column.type == "float" for column in layout.columns],
        )


def type_of(column: Column) -> str:
    """Return a column's type as MySQL writes it: `bigint unsigned`."""
    return f"{column.type} unsigned" if column.unsigned else column.type


@lru_cache(maxsize=64)
def second_text(second: int) -> str:
    """Return seconds since 1970 UTC as `2026-11-21T06:00:00`; cached, because neighbouring events mostly share it."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _asked(query: str, head: bytes) -> bytes:
    """The beginning of a change, with its statement first."""
    return f'{{"rows_query":{text(query)},'.encode() + head[1:]


def _statement(statement: Statement) -> bytes:
    options = ",".join(f"{text(name)}:{text(value)}" for name, value in statement.options.items())
    head = f'{{"schema":{text(statement.schema)},"sql":{text(statement.sql)}'
    return f'{head},"options":{{{options}}}}}'.encode()
