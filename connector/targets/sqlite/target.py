"""SQLite as a target: one file, readable by others while we write.

What is staged is done at once inside the one open write transaction: nobody sees it before its commit, and nobody
else writes meanwhile, because the file has one write lock. So a newer applier waits for an older one's open
transaction (it says so), and gives up after a while: fencing here is the lock first and the token then.

The file is in WAL mode with synchronous=FULL: a commit survives a power cut.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from connector import failpoints as faults
from connector import metrics
from connector.clock import Clock
from connector.errors import ConnectorError, Fenced, TargetUnavailable, Unsupported
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.compact.metadata_columns import Value as TransactionValue
from connector.log.compact.net_changes import AppliedEvent, Ddl, LeftOut, NetChanges
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import TargetPosition
from connector.targets import bookkeeping
from connector.targets.add_metadata_columns import adopted
from connector.targets.ddl.by_hand import done_by_hand
from connector.targets.ddl.plan import located, plan
from connector.targets.default_values import completed
from connector.targets.names import SqliteNaming, check_names
from connector.targets.operations import DropTable
from connector.targets.sqlite import bookkeeping as sqlite_bookkeeping
from connector.targets.sqlite.ddl import SqliteDictionary, column_names_of, quoted, run, table_name
from connector.targets.sqlite.errors import translated
from connector.targets.sqlite.rows import write_rows
from connector.targets.sqlite.types import sqlite_type
from connector.targets.table import Table, from_json, to_json
from connector.targets.target_schema import Excluded, TargetSchema, changed, exclusions
from connector.targets.unique_key_index import UniqueKeyIndex

log = logging.getLogger(__name__)

OLDEST = (3, 37, 0)  # STRICT tables
WAIT_SECONDS = 30.0


class SqliteTarget:
    """A SQLite file.

    Args:
        path: the file; made where it is missing.
        clock: for `applied_at`, and for waiting.
        audit: whether to keep `thl_applied`.
        wait: seconds to wait for the file's write lock.
        columns: those of the transaction that each table has; the layouts of what is staged have them, too.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        audit: bool = False,
        wait: float = WAIT_SECONDS,
        columns: MetadataColumns | None = None,
    ) -> None:
        self._clock = clock
        self._columns = columns.columns if columns else ()
        self._written: set[TableName] = set()  # tables of which rows are staged
        self._audit = audit
        self._wait = wait
        self._service = ""
        self.token = 0
        self._position = TargetPosition(service="")  # as the last commit left it
        self._saved = TargetSchema()  # as the last commit left it
        self._catalog = TargetSchema()
        self._naming = SqliteNaming()
        self._told_keys = UniqueKeyIndex()
        self._passed = Counter[TableName]()  # row changes of excluded tables since the last commit
        self._counted = Counter[TableName]()  # those of earlier commits that the catalogues do not have yet
        if sqlite3.sqlite_version_info < OLDEST:
            raise Unsupported(f"SQLite {sqlite3.sqlite_version} has no STRICT tables: 3.37 is the oldest that does")
        self._path = path
        _private(path)
        with translated(path):
            # autocommit: transactions are begun and ended by us alone
            self._db = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "cache_size=-65536", "temp_store=MEMORY"):
                self._patiently(f"PRAGMA {pragma}")

    @property
    def catalog(self) -> TargetSchema:
        """The tables we made."""
        return self._catalog

    def claim(self, service: str, held: int = 0) -> TargetPosition:
        """Take the file over. Waits for a transaction that another applier has open, and says so."""
        self._service = service
        with translated(self._path):
            self._patiently("BEGIN IMMEDIATE")
            for statement in sqlite_bookkeeping.STATEMENTS:
                self._db.execute(statement)
            columns = ", ".join(bookkeeping.POSITION)
            claimed = self._db.execute(
                "INSERT INTO thl_position (service, token) VALUES (?, 1) ON CONFLICT (service) "
                f"DO UPDATE SET token = token + 1 WHERE ? IN (0, token) RETURNING {columns}, token",
                (service, held),
            ).fetchone()
            if claimed is None:
                self._db.execute("ROLLBACK")
                raise self._fenced(held)
            *row, self.token = claimed
            head = self._db.execute("SELECT head FROM thl_rewound WHERE service = ?", (service,)).fetchone()
            position = bookkeeping.position_from(service, row, head and head[0])
            self._position = position
            tables = [
                from_json(TableName(schema, table), definition)
                for schema, table, definition in self._db.execute(
                    "SELECT schema_name, table_name, definition FROM thl_tables WHERE service = ?", (service,)
                )
            ]
            excluded = bookkeeping.excluded_from(
                self._db.execute(f"SELECT {bookkeeping.EXCLUDED} FROM thl_excluded WHERE service = ?", (service,))
            )
            self._catalog = self._saved = self._adopted(tables, excluded)
            self._counted.clear()
            self._passed.clear()
            self._db.execute("COMMIT")
        faults.point("target.after_claim")
        return position

    def stage(self, changes: Sequence[NetChanges], *, last: bool) -> None:
        """Do the changes in the open transaction: invisible until it commits. `last` makes no difference here."""
        del last
        with translated():
            self._begin()
            for net in changes:
                if net.layout.name in self._catalog.excluded:
                    self._passed[net.layout.name] += net.changes
                    continue
                self._catalog.check(net.layout)
                table = self._catalog.get(net.layout.name)
                if (index := self._told_keys.missing(net, table)) is not None:
                    run(self._db, index)
                write_rows(self._db, table, completed(net, table))
                self._written.add(table.name)
                faults.point("target.mid_stage")

    def ddl(self, ddl: Ddl) -> None:
        """Do the statements' operations in the open transaction."""
        self._told_keys.forget()
        self._count()
        with translated():
            self._begin()
            for statement in ddl.statements:
                try:
                    found = plan(statement, self._catalog, ddl.commit_time)
                    if not found.operations:
                        metrics.ignored_ddl.labels(self._service, found.command).inc()
                    check_names(self._naming, found.catalog)
                    for operation in found.operations:
                        run(self._db, operation)
                except ConnectorError as error:
                    raise located(error, ddl.seqno, statement, self._catalog) from error
                self._catalog = found.catalog

    def stamp(self, values: Sequence[TransactionValue]) -> None:
        """Write them into the rows that have the event's seqno: that reads the tables once more."""
        first, *rest = (quoted(column.name) for column in self._columns)
        if not rest:
            return
        assignments = ", ".join(f"{name} = ?" for name in rest)
        with translated():
            for name in self._written:
                self._db.execute(
                    f"UPDATE {table_name(name)} SET {assignments} WHERE {first} = ?", (*values[1:], values[0])
                )

    def begin_snapshot(self) -> None:
        """Drop every table we made, in the open transaction."""
        self._told_keys.forget()
        self._count()
        with translated():
            self._begin()
            for table in self._catalog:
                run(self._db, DropTable(table, optional=table.name in self._catalog.excluded))
            self._catalog = self._catalog.loading(self._columns, Seqno(self._position.seqno + 1))
            self._written.clear()

    def done_by_hand(self, ddl: Ddl) -> tuple[TableName, ...]:
        """Compare, in the open transaction."""
        self._count()
        self._told_keys.forget()
        with translated():
            self._begin()
            found = done_by_hand(ddl, self._catalog, SqliteDictionary(self._db))
            check_names(self._naming, found.catalog)
        self._catalog = found.catalog
        return found.tables

    def exclude(self, tables: Mapping[TableName, Excluded]) -> None:
        """The commit notes it."""
        self._count()
        for name, entry in tables.items():
            if name not in self._catalog.excluded:
                self._catalog = self._catalog.excluding(name, entry)

    def leave_out(self, event: LeftOut) -> None:
        """Note it in the open transaction. Of a table that is marked already the older mark stays."""
        with translated():
            self._begin()
            skipped, inconsistent = bookkeeping.left_out_rows(self._service, event, self._clock.now())
            self._db.execute("INSERT OR REPLACE INTO thl_skipped VALUES (?, ?, ?, ?, ?, ?, ?, ?)", skipped)
            self._db.executemany("INSERT OR IGNORE INTO thl_inconsistent VALUES (?, ?, ?, ?, ?)", inconsistent)

    def commit(self, position: TargetPosition, events: Iterable[AppliedEvent]) -> None:
        """Write the position under our token, and commit."""
        with translated():
            self._begin()
            faults.point("target.before_merge")  # it was done while staging; here is its end
            faults.point("target.before_position")
            self._write_catalog()
            now = self._clock.now()
            assignments = ", ".join(f"{column} = ?" for column in (*bookkeeping.POSITION, "applied_at"))
            updated = self._db.execute(
                f"UPDATE thl_position SET {assignments} WHERE service = ? AND token = ?",
                (*bookkeeping.position_values(position), now, self._service, self.token),
            )
            if updated.rowcount != 1:
                raise self._fenced(self.token)
            self._take_back(position)
            if self._audit:
                self._db.executemany(
                    "INSERT INTO thl_applied VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    bookkeeping.applied_rows(self._service, events, now, self.token),
                )
            faults.point("target.before_commit")
            self._db.execute("COMMIT")
            self._written.clear()
            self._saved = self._catalog
            self._counted += self._passed
            self._passed.clear()
            self._position = position
            faults.point("target.after_commit")

    def discard(self) -> None:
        """Roll the open transaction back."""
        with translated():
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self._catalog = self._saved
            self._passed.clear()
            self._written.clear()
            self._told_keys.forget()

    def close(self) -> None:
        """Close the file; an open transaction is rolled back."""
        self._db.close()

    def _count(self) -> None:
        """Give the catalogues what was counted, before an exclusion goes under another name or ends."""
        if self._counted:
            same = self._catalog is self._saved
            self._saved = self._saved.counted(self._counted)
            self._catalog = self._saved if same else self._catalog.counted(self._counted)
            self._counted.clear()

    def _adopted(self, tables: Sequence[Table], excluded: Mapping[TableName, Excluded]) -> TargetSchema:
        """Give tables what they lack of the transaction's columns; those that are excluded stay as they are."""
        found = adopted(
            tables,
            self._columns,
            excluded,
            there=lambda name: column_names_of(self._db, name),
            name=table_name,
            column=lambda column: (quoted(column.name), sqlite_type(column)),
        )
        check_names(self._naming, found.catalog)
        for statement in found.statements:
            self._db.execute(statement)
        self._db.executemany(
            "UPDATE thl_tables SET definition = ? WHERE service = ? AND schema_name = ? AND table_name = ?",
            ((to_json(table), self._service, *table.name) for table in found.tables),
        )
        return found.catalog

    def _begin(self) -> None:
        """Open the transaction, unless it is; and see that nobody has taken the file over."""
        if self._db.in_transaction:
            return
        self._patiently("BEGIN IMMEDIATE")
        row = self._db.execute("SELECT token FROM thl_position WHERE service = ?", (self._service,)).fetchone()
        if row != (self.token,):
            raise self._fenced(self.token)

    def _fenced(self, token: int) -> Fenced:
        return Fenced("a newer applier has taken the target over", service=self._service, token=token)

    def _take_back(self, position: TargetPosition) -> None:
        """What a position that is before the last one, or comes up to where it was, changes beside itself."""
        if position.head != self._position.head:
            self._db.execute("DELETE FROM thl_rewound WHERE service = ?", (self._service,))
            if position.head != NO_SEQNO:
                self._db.execute("INSERT INTO thl_rewound VALUES (?, ?)", (self._service, position.head))
        if position.seqno < self._position.seqno:
            later = (self._service, position.seqno)
            self._db.execute("DELETE FROM thl_applied WHERE service = ? AND seqno > ?", later)

    def _write_catalog(self) -> None:
        gone, new = changed(self._saved, self._catalog)
        self._db.executemany(
            "DELETE FROM thl_tables WHERE service = ? AND schema_name = ? AND table_name = ?",
            ((self._service, *name) for name in gone),
        )
        self._db.executemany(
            "INSERT INTO thl_tables VALUES (?, ?, ?, ?, ?)",
            ((self._service, *table.name, *self._naming.table(table.name), to_json(table)) for table in new),
        )
        where = "WHERE service = ? AND schema_name = ? AND table_name = ?"
        included, excluded = exclusions(self._saved, self._catalog)
        self._db.executemany(f"DELETE FROM thl_excluded {where}", ((self._service, *name) for name in included))
        self._db.executemany(
            "INSERT INTO thl_excluded VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (bookkeeping.excluded_row(self._service, name, entry) for name, entry in excluded.items()),
        )
        self._db.executemany(
            f"UPDATE thl_excluded SET changes = changes + ? {where}",
            ((count, self._service, *name) for name, count in self._passed.items()),
        )

    def _patiently(self, sql: str) -> None:
        """Run a statement that needs a lock, waiting for it up to `wait` seconds."""
        deadline = self._clock.monotonic() + self._wait
        pause = 0.001
        while True:
            try:
                self._db.execute(sql)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise
                if self._clock.monotonic() > deadline:
                    raise TargetUnavailable(
                        f"another process has held the file's write lock for {self._wait:g} s",
                        hint="An older applier that is stopped (SIGSTOP) inside a transaction holds it: end it.",
                        service=self._service or None,
                    ) from error
                if pause > 0.1:
                    log.info("waiting for another applier's transaction", extra={"service": self._service})
                self._clock.sleep(pause)
                pause = min(pause * 2, 0.5)
            else:
                return


def _private(path: Path) -> None:
    """Make a file that is missing, for its owner alone; SQLite gives the same mode to those that it puts beside it."""
    with suppress(OSError):  # it is there already, or cannot be made: SQLite says why
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
