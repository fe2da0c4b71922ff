"""Statements of statement and mixed format: what comes before one in the log is gathered, and whether it is for us.

Statements are wanted only where the filter keeps them; elsewhere a change that was logged as one ends the reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.mysql.binlog.events import load_data
from connector.mysql.binlog.events.capture_filter import CaptureFilter
from connector.mysql.binlog.events.event_types import ROW_FORMAT
from connector.mysql.binlog.events.load_data import LoadedFiles
from connector.mysql.binlog.events.query import Query, captures_statement, may_change_captured, query
from connector.mysql.binlog.events.statement_values import INTVAR, RAND, USER_VAR, statement_values
from connector.mysql.fields import Fields
from connector.mysql.values.collations import charset_of

PARTS: Final = frozenset(
    {INTVAR, RAND, USER_VAR, load_data.BEGIN_LOAD_QUERY, load_data.APPEND_BLOCK, load_data.DELETE_FILE}
)
ONE_SHOT: Final = re.compile(r"(?:@@)?(?:session\.)?([A-Za-z_]+)=('[^']*'|[0-9]+)")
CHANGE: Final = "a change was logged as a statement"
HINT: Final = f"{ROW_FORMAT}; or take them as they are: source.statements=keep"


class Statements:
    """What has come of the next statement.

    Args:
        filters: which are for us.
    """

    def __init__(self, filters: CaptureFilter) -> None:
        self._filters = filters
        self.keeps = filters.keeps_statements
        self._files = LoadedFiles()
        self.pending: dict[str, str] = {}  # values for the next statement, in their order
        self.charset = "utf8mb4"  # of the next statement's text, where it does not tell itself

    def part(self, code: int, body: bytes) -> None:
        """An event that belongs to a statement which is still to come.

        Raises:
            CorruptBinlog, Unsupported: as `statement_values` and `LoadedFiles` do.
        """
        if code in {INTVAR, RAND, USER_VAR}:
            self.pending |= statement_values(code, body)
            return
        event = Fields(body)
        file_id = event.number(4)
        if code == load_data.DELETE_FILE:
            self._files.delete(file_id)
        elif self.keeps:
            add = self._files.begin if code == load_data.BEGIN_LOAD_QUERY else self._files.append
            add(file_id, event.rest())

    def one_shot(self, found: Query) -> bool:
        """Whether it is what 4.1 says of the session of the statement behind it: a statement of its own there."""
        values = ONE_SHOT.findall(found.statement.sql) if found.statement.sql.startswith("SET ONE_SHOT ") else ()
        for name, value in values:
            self.pending[name.lower()] = value.strip("'")
            if name.upper() == "CHARACTER_SET_CLIENT":
                self.charset = charset_of(int(value))
        return bool(values)

    def loading(self, body: bytes, timestamp: int, flags: int) -> tuple[Query, Iterator[Statement]]:
        """LOAD DATA: the statement, and the blocks of its file, which come before it."""
        file_id, body, place = load_data.load_query(body)
        found = query(body, timestamp, flags)
        statement = found.statement
        options = load_data.load_options(file_id, body, found.charset, place)
        found = Query(
            Statement(statement.schema, statement.sql, {**statement.options, **options}),
            found.control,
            found.schemas,
            found.charset,
        )
        return found, self._files.blocks(file_id) if self.keeps else iter(())

    def of(self, found: Query) -> Statement | None:
        """The statement with the values that came before it; None when it is not for us.

        Raises:
            Unsupported: it is a change, and these are not kept.
        """
        values = dict(self.pending)
        self.pending.clear()
        if found.control == "savepoint":
            return found.statement if self.keeps else None
        if found.control == "change":
            if not may_change_captured(found, self._filters):
                return None
        elif found.control != "rollback to" and not captures_statement(found, self._filters):
            return None
        if found.control and not self.keeps:
            rolled_back = found.control == "rollback to"
            what = "a part of a transaction was rolled back after it was logged" if rolled_back else CHANGE
            raise Unsupported(what, hint=HINT, sql=found.statement.sql[:200])
        if not values:
            return found.statement
        return Statement(found.statement.schema, found.statement.sql, {**found.statement.options, **values})

    def leave_out(self) -> None:
        """A statement is not for us, nor are the values that came before it. The file that it reads is gone already."""
        self.pending.clear()
