"""SQLite as a target: one file, which others can read while the applier writes.

Staged changes are applied at once in the open write transaction. Other sessions do not see them before the commit and
cannot write, because the file has one write lock. A newer applier therefore waits for an older one's open transaction
(and logs it) and fails after a time limit. The lock fences first, the token afterwards.

The file is in WAL mode with synchronous=FULL: a commit survives a power failure.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from connector import failpoints as faults
from connector.clock import Clock
from connector.errors import ConfigError, TargetUnavailable, Unsupported
from connector.log.compact.history import HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.compact.metadata_columns import Value as TransactionValue
from connector.log.compact.net_changes import AppliedEvent, Ddl, LeftOut, NetChanges
from connector.log.ids import Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.position import TargetPosition
from connector.targets import bookkeeping
from connector.targets.add_metadata_columns import missing_columns
from connector.targets.commit_statements import CommitStatement, CommitStatements
from connector.targets.ddl.by_hand import done_by_hand
from connector.targets.ddl.loads import plan_load, tolerant
from connector.targets.ddl.planned import planned
from connector.targets.default_values import with_whole_inserts
from connector.targets.histories import late_values
from connector.targets.logged_statements import not_executed
from connector.targets.names import check_names, quoted
from connector.targets.sqlite.bookkeeping import DIALECT, STATEMENTS
from connector.targets.sqlite.catalog_checks import check_deletes
from connector.targets.sqlite.ddl import SqliteDictionary, column_names_of, run
from connector.targets.sqlite.errors import translated
from connector.targets.sqlite.marks import create_marks, marks_of
from connector.targets.sqlite.names import SqliteNames, table_name
from connector.targets.sqlite.rows import write_rows
from connector.targets.sqlite.types import sqlite_type
from connector.targets.staged_schema import StagedSchema
from connector.targets.table import Table, from_json, to_json
from connector.targets.target_schema import Excluded, TargetSchema, of_table
from connector.targets.unique_key_index import UniqueKeyIndex

LOG: Final = logging.getLogger(__name__)

OLDEST = (3, 37, 0)  # STRICT tables
WAIT_SECONDS = 30.0


class SqliteTarget:
    """A SQLite file.

    Args:
        path: the file; created if it is missing.
        clock: for `applied_at`, and for waiting.
        audit: true to write `thl_applied`.
        wait: seconds to wait for the file's write lock.
        columns: the metadata columns of every table and of the layouts of staged rows.
        history: the tables that have a history; None: there are none.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        audit: bool = False,
        wait: float = WAIT_SECONDS,
        columns: MetadataColumns | None = None,
        history: HistoryTables | None = None,
    ) -> None:
        self._clock = clock
        self._columns = columns.columns if columns else ()
        self._written: set[TableName] = set()  # tables with staged rows
        self._audit = audit
        self._wait = wait
        self._service = ""
        self.token = 0
        self.identity = ""
        self._position = TargetPosition(service="")  # as the last commit left it
        self._schema = StagedSchema(history)
        self._names = SqliteNames()
        self._unique_key_indexes = UniqueKeyIndex()
        if sqlite3.sqlite_version_info < OLDEST:
            raise Unsupported(f"SQLite {sqlite3.sqlite_version} has no STRICT tables: 3.37 or later is needed")
        self._path = path
        _private(path)
        with translated(path):
            # autocommit: the applier begins and ends transactions itself
            self._db = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "cache_size=-65536", "temp_store=MEMORY"):
                self._run_waiting(f"PRAGMA {pragma}")

    @property
    def target_schema(self) -> TargetSchema:
        """The tables that the applier created, after the staged changes."""
        return self._schema.tables

    def claim(self, service: str, previous_token: int = 0, mark: str = "") -> TargetPosition:
        """Claim the file. Waits for the open transaction of another applier, and logs that."""
        self._service = service
        with translated(self._path):
            self._run_waiting("BEGIN IMMEDIATE")
            for statement in STATEMENTS:
                self._db.execute(statement)
            self._check_schema_version(service)
            claims = self._db.execute("SELECT token, mark FROM thl_claim WHERE service = ?", (service,)).fetchall()
            columns = ", ".join(bookkeeping.POSITION)
            claimed = self._db.execute(
                "INSERT INTO thl_position (service, token) VALUES (?, 1) ON CONFLICT (service) "
                f"DO UPDATE SET token = token + 1 WHERE ? IN (0, token) RETURNING {columns}, token",
                (service, bookkeeping.last_token(previous_token, mark, claims)),
            ).fetchone()
            if claimed is None:
                self._db.execute("ROLLBACK")
                raise bookkeeping.fenced(service, previous_token)
            *row, token = claimed
            if mark:
                self._db.execute("REPLACE INTO thl_claim VALUES (?, ?, ?)", (service, token, mark))
            self._db.execute(
                "INSERT INTO thl_identity VALUES (?, lower(hex(randomblob(16)))) ON CONFLICT DO NOTHING", (service,)
            )
            query = "SELECT identity FROM thl_identity WHERE service = ?"
            (self.identity,) = self._db.execute(query, (service,)).fetchone()
            head = self._db.execute("SELECT head FROM thl_rewound WHERE service = ?", (service,)).fetchone()
            position = bookkeeping.position_from(service, row, head and head[0])
            tables = [
                from_json(TableName(schema, table), definition)
                for schema, table, definition in self._db.execute(
                    "SELECT schema_name, table_name, definition FROM thl_tables WHERE service = ?", (service,)
                )
            ]
            excluded = bookkeeping.excluded_from(
                self._db.execute(f"SELECT {bookkeeping.EXCLUDED} FROM thl_excluded WHERE service = ?", (service,))
            )
            schema = self._add_metadata_columns(tables, excluded)
            query = f"SELECT {bookkeeping.LOADING} FROM thl_loading WHERE service = ?"
            loads = bookkeeping.loading_from(self._db.execute(query, (service,)))
            schema, position = bookkeeping.with_loads(schema, position, loads)
            self._position = position
            self._schema.claimed(schema)
            self._create_histories(schema)
            self._write(self._statements().tables(self._schema, self._names.table))
            self._schema.committed()
            self._db.execute("COMMIT")
        self.token = token
        faults.point("target.after_claim")
        return position

    def _check_schema_version(self, service: str) -> None:
        """Refuse a position of a newer version; end the transaction then."""
        if "schema_version" not in {column[1] for column in self._db.execute("PRAGMA table_info(thl_position)")}:
            self._db.execute("ALTER TABLE thl_position ADD COLUMN schema_version INTEGER NOT NULL DEFAULT 1")
        query = "SELECT schema_version FROM thl_position WHERE service = ?"
        (version,) = self._db.execute(query, (service,)).fetchone() or (bookkeeping.BASE_VERSION,)
        try:
            bookkeeping.check_schema_version(service, version)
        except ConfigError:
            self._db.execute("ROLLBACK")
            raise

    def stage(self, changes: Sequence[NetChanges], *, last: bool) -> None:
        """Apply the changes in the open transaction; they are invisible until the commit. Ignores `last`."""
        del last
        with translated():
            self._begin()
            for net in changes:
                if self._schema.leaves_out(net):
                    continue
                with of_table(net.layout.name), translated():
                    self._schema.tables.check(net.layout)
                    table = self._schema.tables.get(net.layout.name)
                    if (index := self._unique_key_indexes.missing(net, table)) is not None:
                        run(self._db, index)
                    marks = self._schema.marks(table.name)
                    marked = None if marks is None else marks_of(self._db, table, marks)
                    if marked is not None and not marked.in_place:
                        check_deletes(self._db, table)
                    whole = tolerant(with_whole_inserts(net, table), table, self._schema.tables, marked)
                    write_rows(self._db, table, whole, marked)
                self._written.add(table.name)
                faults.point("target.mid_stage")

    def ddl(self, ddl: Ddl) -> None:
        """Apply the statements' operations in the open transaction."""
        self._unique_key_indexes.forget()
        self._schema.add_counts()
        with translated():
            self._begin()
            for statement in ddl.statements:
                with planned(self._service, ddl, statement, self._schema, self._names) as found, translated():
                    for operation in (*found.operations, *found.histories):
                        run(self._db, operation)
        self.stage(self._schema.statement_rows(ddl), last=False)

    def load(self, event: LoadEvent, ddl: Ddl) -> None:
        """Apply the operations in the open transaction."""
        if event.part is Part.REPAIR:
            self._schema.repair(event.table, partial(check_deletes, self._db, in_place=True))
            return
        self._unique_key_indexes.forget()
        self._schema.add_counts()
        with translated():
            self._begin()
            found = plan_load(
                event,
                ddl,
                self._schema.tables,
                service=self._service,
                now=self._clock.now(),
                consistent=self._position.consistent,
                check=partial(check_deletes, self._db),
            )
            histories, after = self._schema.create_histories(found.target_schema)
            check_names(self._names, after)
            with of_table(event.table), translated():
                for operation in (*found.operations, *histories):
                    run(self._db, operation)
        self._schema.tables = after

    def execute(self, statement: Statement, seqno: Seqno) -> None:
        """Refuse the statement."""
        del seqno
        raise not_executed(statement, "SQLite")

    def set_metadata(self, values: Sequence[TransactionValue], event: Sequence[TransactionValue] = ()) -> None:
        """Update the rows that have the event's seqno; that reads the tables again."""
        with translated():
            for name, ((first, seqno), *rest) in late_values(
                self._written, self._schema.tables, self._columns, values, event
            ):
                assignments = ", ".join(f"{quoted(column.name)} = ?" for column, _ in rest)
                sql = f"UPDATE {table_name(name)} SET {assignments} WHERE {quoted(first.name)} = ?"
                self._db.execute(sql, (*(value for _, value in rest), seqno))

    def begin_snapshot(self) -> None:
        """Drop every table of the applier, in the open transaction."""
        self._unique_key_indexes.forget()
        with translated():
            self._begin()
            for drop in self._schema.begin_snapshot(self._columns, Seqno(self._position.seqno + 1)):
                run(self._db, drop)
            self._written.clear()

    def done_by_hand(self, ddl: Ddl) -> tuple[TableName, ...]:
        """Compare the definitions in the open transaction."""
        self._schema.add_counts()
        self._unique_key_indexes.forget()
        with translated():
            self._begin()
            found = done_by_hand(ddl, self._schema.tables, SqliteDictionary(self._db))
            self._create_histories(found.target_schema)
            self._schema.note_statements(found.statements)
        self.stage(self._schema.statement_rows(ddl), last=False)
        return found.tables

    def exclude(self, tables: Mapping[TableName, Excluded]) -> None:
        """Record the exclusions with the next commit."""
        self._schema.exclude(tables)

    def leave_out(self, event: LeftOut) -> None:
        """Record it in the open transaction."""
        with translated():
            self._begin()
            self._write(self._statements().left_out([event]))

    def commit(self, position: TargetPosition, events: Iterable[AppliedEvent]) -> None:
        """Write the position under the token of `claim`, and commit."""
        with translated():
            self._begin()
            faults.point("target.before_merge")  # rows were applied while staging; this is its end
            faults.point("target.before_position")
            shown = replace(position, consistent=self._schema.consistent(otherwise=position.consistent))
            statements = self._statements()
            if self._db.execute(statements.position(shown).sql).rowcount != 1:
                raise bookkeeping.fenced(self._service, self.token)
            written = statements.after_position(
                self._position,
                position,
                self._schema,
                table_name=table_name,
                target_name=self._names.table,
                audited=events if self._audit else (),
            )
            self._write(written)
            self._write_marks()
            faults.point("target.before_commit")
            self._db.execute("COMMIT")
            self._written.clear()
            self._schema.committed()
            self._position = position
            faults.point("target.after_commit")

    def discard(self) -> None:
        """Roll the open transaction back."""
        with translated():
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self._schema.discard()
            self._written.clear()
            self._unique_key_indexes.forget()

    def close(self) -> None:
        """Close the file; an open transaction is rolled back."""
        self._db.close()

    def _add_metadata_columns(self, tables: Sequence[Table], excluded: Mapping[TableName, Excluded]) -> TargetSchema:
        """Add missing metadata columns to tables; excluded tables stay as they are."""
        found = missing_columns(
            tables,
            self._columns,
            excluded,
            existing_columns=lambda name: column_names_of(self._db, name),
            name=table_name,
            column=lambda column: (quoted(column.name), sqlite_type(column)),
        )
        check_names(self._names, found.target_schema)
        for statement in found.statements:
            self._db.execute(statement)
        self._db.executemany(
            "UPDATE thl_tables SET definition = ? WHERE service = ? AND schema_name = ? AND table_name = ?",
            ((to_json(table), self._service, *table.name) for table in found.tables),
        )
        return found.target_schema

    def _create_histories(self, schema: TargetSchema) -> None:
        """Create the histories that tables of a schema lack, and change to the schema with them."""
        operations, after = self._schema.create_histories(schema)
        check_names(self._names, after)
        for operation in operations:
            run(self._db, operation)
        self._schema.tables = after

    def _begin(self) -> None:
        """Open the transaction unless it is open, and check that no newer applier has claimed the file."""
        if self._db.in_transaction:
            return
        self._run_waiting("BEGIN IMMEDIATE")
        row = self._db.execute("SELECT token FROM thl_position WHERE service = ?", (self._service,)).fetchone()
        if row != (self.token,):
            raise bookkeeping.fenced(self._service, self.token)

    def _statements(self) -> CommitStatements:
        return CommitStatements(DIALECT, self._service, self.token, self._clock.now())

    def _write(self, statements: Iterable[CommitStatement]) -> None:
        for statement in statements:
            self._db.execute(statement.sql)

    def _write_marks(self) -> None:
        """Drop the tables of marks that no load needs any more, and create those that one needs."""
        old, new = self._schema.changed_marks()
        for name in old:
            self._db.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
        for name, table in new:
            self._db.execute(create_marks(name, table))

    def _run_waiting(self, sql: str) -> None:
        """Run a statement that needs a lock; wait up to `wait` seconds for the lock."""
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
                        hint="An older applier may be stopped (SIGSTOP) inside a transaction: end its process.",
                        service=self._service or None,
                    ) from error
                if pause > 0.1:
                    LOG.info("waiting for another applier's transaction", extra={"service": self._service})
                self._clock.sleep(pause)
                pause = min(pause * 2, 0.5)
            else:
                return


def _private(path: Path) -> None:
    """Create a missing file that only its owner can read; SQLite gives the same mode to the files beside it."""
    with suppress(OSError):  # it exists, or SQLite reports why it cannot be created
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
