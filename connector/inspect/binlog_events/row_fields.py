"""Fields of TABLE_MAP and rows events: tables with their columns, columns that images have, rows."""

from __future__ import annotations

import json
from json.encoder import encode_basestring as text
from typing import Any, Final

from connector.inspect.binlog_events.control_fields import names_of
from connector.inspect.binlog_events.walk import LogEvent
from connector.inspect.formats.json_rows import JsonRows
from connector.inspect.formats.json_transaction import type_of
from connector.log.ids import Action
from connector.log.transaction.layout import Column, TableLayout
from connector.mysql.binlog.events.capture_filter import CaptureFilter
from connector.mysql.binlog.events.column_names import NumberingResolver
from connector.mysql.binlog.events.mariadb import plain_rows
from connector.mysql.binlog.events.table_map import table_layout, table_map
from connector.mysql.binlog.row_events import RowEvents
from connector.mysql.fields import Fields
from connector.mysql.values.session_names import named_option

TABLE_MAP: Final = 19
TABLE_FLAGS: Final = {0x01: "BIT_LENGTHS_EXACT", 0x02: "REFERENCED_BY_OTHER_SCHEMA", 0x04: "GENERATED_INVISIBLE_KEY"}
ROWS_FLAGS: Final = {
    0x01: "STATEMENT_END",
    0x02: "NO_FOREIGN_KEY_CHECKS",
    0x04: "RELAXED_UNIQUE_CHECKS",
    0x08: "COMPLETE_ROWS",
    0x10: "USE_SQL_FOREIGN_KEY",
}
# Type → action, version 2, partial JSON, compressed by MariaDB.
ROWS: Final = {
    23: (Action.INSERT, False, False, False), 24: (Action.UPDATE, False, False, False),
    25: (Action.DELETE, False, False, False), 30: (Action.INSERT, True, False, False),
    31: (Action.UPDATE, True, False, False), 32: (Action.DELETE, True, False, False),
    39: (Action.UPDATE, True, True, False), 166: (Action.INSERT, False, False, True),
    167: (Action.UPDATE, False, False, True), 168: (Action.DELETE, False, False, True),
    169: (Action.INSERT, True, False, True), 170: (Action.UPDATE, True, False, True),
    171: (Action.DELETE, True, False, True),
}  # fmt: skip
TYPES: Final = frozenset({TABLE_MAP, *ROWS})
NDB, PARTITION = 0, 1  # what extra data begins with


class RowFields:
    """Decodes TABLE_MAP and rows events, in the order of the log.

    Args:
        filters: limits and rules for values.
    """

    def __init__(self, filters: CaptureFilter) -> None:
        self._largest = filters.largest_event
        self._events = RowEvents(filters, NumberingResolver())

    def forget(self, *, mariadb: bool) -> None:
        """Forget the tables: a file begins."""
        self._events.forget(mariadb)

    def of(self, event: LogEvent) -> dict[str, Any]:
        """The fields of an event."""
        if event.code == TABLE_MAP:
            self._events.describe(event.body)
            return _table(event)
        action, second, partial, compressed = ROWS[event.code]
        body = event.body
        if compressed:
            body = plain_rows(body, second, action is Action.UPDATE, self._largest)
        return self._rows(body, action, second=second, partial=partial)

    def _rows(self, body: bytes, action: Action, *, second: bool, partial: bool) -> dict[str, Any]:
        fields = Fields(body)
        table_id, flags = fields.number(6), fields.number(2)
        found: dict[str, Any] = {"table_id": table_id, "flags": names_of(flags, ROWS_FLAGS)}
        if second:
            extra = fields.take(max(fields.number(2) - 2, 0))
            if extra:
                found["extra"] = _extra(extra)
        width = fields.packed()
        bitmaps = [fields.take((width + 7) // 8) for _ in range(2 if action is Action.UPDATE else 1)]
        if width == 0:
            return found | {"columns": 0, "rows": []}
        layout, rows = self._events.rows(body, int(action), second, partial)
        names = [column.name for column in layout.columns]
        images = ("before", "after") if action is Action.UPDATE else ("after",)
        found |= {"schema": layout.name.schema, "table": layout.name.table, "columns": width}
        for image, bits in zip(("before",) if action is Action.DELETE else images, bitmaps, strict=True):
            found[f"{image}_columns"] = [names[at] for at in range(width) if bits[at // 8] >> at % 8 & 1]
        printed = _printer(layout).printed(rows.data, rows.ends, rows.before, rows.after) if rows else b""
        return found | {"rows": json.loads(b"[" + printed + b"]")}


def _printer(layout: TableLayout) -> JsonRows:
    return JsonRows(
        [f"{text(column.name)}:".encode() for column in layout.columns],
        [column.type == "bigint" and column.unsigned for column in layout.columns],
        [column.type == "float" for column in layout.columns],
    )


def _table(event: LogEvent) -> dict[str, Any]:
    fields = Fields(event.body)
    table_id, flags = fields.number(6), fields.number(2)
    hidden = bool(flags & 0x04) and not event.mariadb
    table = table_map(fields.rest(), mariadb=event.mariadb, hidden_key=hidden)
    layout, _ = table_layout(table) if table.named else NumberingResolver().layout(table)
    return {
        "table_id": table_id,
        "flags": names_of(flags, TABLE_FLAGS),
        "schema": layout.name.schema,
        "table": layout.name.table,
        "columns": [_column(column, raw.collation) for column, raw in zip(layout.columns, table.raws, strict=True)],
        "key": [layout.columns[at].name for at in layout.key],
    }


def _column(column: Column, collation: int | None) -> dict[str, Any]:
    found: dict[str, Any] = {"name": column.name, "type": type_of(column), "nullable": column.nullable}
    if column.labels:
        found["labels"] = list(column.labels)
    if collation is not None:
        found["collation"] = named_option("collation_connection", str(collation))
    return found


def _extra(extra: bytes) -> dict[str, Any]:
    """The extra data of version 2: NDB's, or the rows' partition (an update: of both images)."""
    fields = Fields(extra)
    kind = fields.number(1)
    if kind == PARTITION:
        found = {"partition": fields.number(2)}
        return found | ({"source_partition": fields.number(2)} if fields.left else {})
    return {"type": kind, "bytes": fields.rest().hex()}
