"""Statement and mixed format: gathers the events that precede a statement, and decides if it is captured.

Changes logged as statements are published only if the filter keeps them; otherwise they end reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from connector.errors import CorruptBinlog, Unsupported
from connector.log.rules import NEW_LOG
from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Statement
from connector.mysql.binlog.events import load_data
from connector.mysql.binlog.events.capture_filter import CaptureFilter
from connector.mysql.binlog.events.event_types import ROW_FORMAT
from connector.mysql.binlog.events.load_data import LoadedFiles
from connector.mysql.binlog.events.old_load import CREATE_FILE, EXEC_LOAD, LOAD, NEW_LOAD, OldLoad, old_load
from connector.mysql.binlog.events.query import Query, captures_statement, may_change_captured, query
from connector.mysql.binlog.events.statement_values import INTVAR, RAND, USER_VAR, statement_values
from connector.mysql.fields import Fields
from connector.mysql.values.collations import charset_of

PARTS: Final = frozenset(
    {INTVAR, RAND, USER_VAR, load_data.BEGIN_LOAD_QUERY, load_data.APPEND_BLOCK, load_data.DELETE_FILE, CREATE_FILE}
)
OLD_LOADS: Final = frozenset({LOAD, EXEC_LOAD, NEW_LOAD})
ONE_SHOT: Final = re.compile(r"(?:@@)?(?:session\.)?([A-Za-z_]+)=('[^']*'|[0-9]+)")
CHANGE: Final = "a change was logged as a statement"


def way_out(filters: CaptureFilter) -> str:
    """The remedy for a change that was logged as a statement, which is in the log whatever later ones are."""
    if filters.needs_rows:
        this = f"{filters.needs_rows} can do with rows alone, so {NEW_LOG}, whose initial load has the change"
    else:
        this = (
            "source.statements=keep publishes it as a statement. A MySQL target executes it with "
            "target.statements=execute. Another applier stops at its event: make the same change on the target by "
            "hand, none if it is about no captured table, then thl apply --skip-seqno"
        )
    return f"for later changes {ROW_FORMAT}; this one is in the log: {this}"


class Statements:
    """Gathers the parts of the next statement.

    Args:
        filters: decide what is captured.
    """

    def __init__(self, filters: CaptureFilter) -> None:
        self._filters = filters
        self.keeps = filters.keeps_statements
        self._files = LoadedFiles()
        self._old_loads: dict[int, OldLoad] = {}  # by the file that EXEC_LOAD reads
        self.pending: dict[str, str] = {}  # values for the next statement, in order
        self.charset = "utf8mb4"  # of the next statement's text, if its event does not name it

    def part(self, code: int, body: bytes) -> None:
        """Accepts an event that belongs to the next statement.

        Raises:
            CorruptBinlog, Unsupported: as `statement_values` and `LoadedFiles` do.
        """
        if code in {INTVAR, RAND, USER_VAR}:
            self.pending |= statement_values(code, body)
            return
        if code == CREATE_FILE:
            self._create_file(body)
            return
        event = Fields(body)
        file_id = event.number(4)
        if code == load_data.DELETE_FILE:
            self._files.delete(file_id)
            self._old_loads.pop(file_id, None)
        elif self.keeps:
            add = self._files.begin if code == load_data.BEGIN_LOAD_QUERY else self._files.append
            add(file_id, event.rest())

    def one_shot(self, found: Query) -> bool:
        """True for SET ONE_SHOT, in which 4.1 logs the session of the next statement; its values are kept."""
        values = ONE_SHOT.findall(found.statement.sql) if found.statement.sql.startswith("SET ONE_SHOT ") else ()
        for name, value in values:
            self.pending[name.lower()] = value.strip("'")
            if name.upper() == "CHARACTER_SET_CLIENT":  # a number here, in later versions a name
                self.charset = self.pending["character_set_client"] = charset_of(int(value))
        return bool(values)

    def _create_file(self, body: bytes) -> None:
        """Accepts CREATE_FILE: a statement, and the first block of its file."""
        load = old_load(CREATE_FILE, body)
        if load.file_id is None:
            raise ValueError("CREATE_FILE has an id")
        if self.keeps:
            self._files.begin(load.file_id, load.block)
        elif len(self._old_loads) >= load_data.MOST_FILES:
            self._old_loads.clear()
        self._old_loads[load.file_id] = load

    def old_loading(self, code: int, body: bytes, timestamp: int) -> tuple[Query, Iterator[Statement] | None, int]:
        """Decodes LOAD DATA of servers before 5.0.3.

        Returns:
            The statement; the blocks of its file, which precede it, or None if the log does not hold the file; its
            thread.

        Raises:
            CorruptBinlog: a length is wrong, or the file has not begun.
        """
        blocks: Iterator[Statement] | None = None
        options = {"timestamp": f"{timestamp}.000000"}
        if code == EXEC_LOAD:
            file_id = Fields(body).number(4)
            if file_id not in self._old_loads:
                raise CorruptBinlog("LOAD DATA reads a file that has not begun", file_id=file_id)
            load = self._old_loads.pop(file_id)
            blocks = self._files.blocks(file_id) if self.keeps else iter(())
            options |= {
                replay.LOAD_FILE: str(file_id),
                replay.LOAD_FROM: str(load.name_range[0]),
                replay.LOAD_TO: str(load.name_range[1]),
                replay.LOAD_DUPLICATES: load.duplicates,
            }
        else:
            load = old_load(code, body)
            options[replay.LOAD_NOT_LOGGED] = "1"
        return Query(Statement(load.schema, load.sql, options), "change", (), self.charset), blocks, load.thread_id

    def loading(
        self, body: bytes, timestamp: int, flags: int, *, keeps_bytes: bool = False
    ) -> tuple[Query, Iterator[Statement]]:
        """Decodes LOAD DATA: the statement, and the blocks of its file, which precede it."""
        file_id, body, name_range = load_data.load_query(body)
        found = query(body, timestamp, flags, keeps_bytes=keeps_bytes)
        statement = found.statement
        options = load_data.load_options(file_id, body, found.charset, name_range)
        found = Query(
            Statement(statement.schema, statement.sql, {**statement.options, **options}),
            found.control,
            found.schemas,
            found.charset,
        )
        return found, self._files.blocks(file_id) if self.keeps else iter(())

    def of(self, found: Query) -> Statement | None:
        """The statement with the values before it; None if it is not captured.

        Raises:
            Unsupported: it is a change, and changes logged as statements are not kept.
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
            noted = ", ".join(found.schemas) or "not in the log, so no filter can leave the change out"
            raise Unsupported(
                what,
                hint=way_out(self._filters),
                sql=found.statement.sql[:200],
                schemas=None if rolled_back else noted,
            )
        if not values:
            return found.statement
        return Statement(found.statement.schema, found.statement.sql, {**found.statement.options, **values})

    def leave_out(self) -> None:
        """Drops the values of a statement that is not captured. `loading` has dropped the file that it reads."""
        self.pending.clear()
