"""DuckDB as a target: one file, which others can read between commits.

Staged changes are applied at once in the open transaction; other sessions do not see them before the commit. DDL is
transactional, too: statements, rows and position commit together. DuckDB locks the file for this process, so a newer
applier waits for the commit of an older one, or for its end (`file`); the older one finds the newer token then. Two
sessions of one process have no lock between them: each transaction begins by writing its token, which makes those of
others fail.

A commit is in the write-ahead log on the disk when it returns. After a crash the next process that opens the file
applies the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import uuid4

import duckdb

from connector import failpoints as faults
from connector.clock import Clock
from connector.errors import ConfigError, TargetUnavailable
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
from connector.targets.duckdb.bookkeeping import create, dialect
from connector.targets.duckdb.catalog_checks import check_deletes
from connector.targets.duckdb.ddl import run
from connector.targets.duckdb.dictionary import DuckDbDictionary, column_names_of
from connector.targets.duckdb.errors import connector_error, translated
from connector.targets.duckdb.file import WAIT_SECONDS, DuckDbFile, FileSession
from connector.targets.duckdb.literals import column_literal
from connector.targets.duckdb.marks import create_marks, marks_of
from connector.targets.duckdb.names import NAMES
from connector.targets.duckdb.rows import write_rows
from connector.targets.duckdb.types import duckdb_type
from connector.targets.histories import late_values
from connector.targets.logged_statements import not_executed
from connector.targets.names import check_names, quoted
from connector.targets.staged_schema import StagedSchema
from connector.targets.table import Table, from_json, to_json
from connector.targets.target_schema import Excluded, TargetSchema, of_table


class DuckDbTarget:
    """A DuckDB file.

    Args:
        path: the file; created if it is missing.
        clock: for `applied_at`, and for waiting.
        audit: true to write `thl_applied`.
        wait: seconds to wait for other processes that have the file open.
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
        self._file = DuckDbFile(path, clock, wait=wait)
        self._in_transaction = False
        _ = self._file.session  # opens the file: what is wrong with it is an error before the claim

    @property
    def target_schema(self) -> TargetSchema:
        """The tables that the applier created, after the staged changes."""
        return self._schema.tables

    def claim(self, service: str, previous_token: int = 0, mark: str = "") -> TargetPosition:
        """Claim the file. Waits for other processes that have it open, and logs that."""
        self._service = service
        self._claim_token(service, previous_token, mark)
        with translated():
            session = self._file.session
            query = f"SELECT {{}} FROM {session.bookkeeping}{{}} WHERE service = ?"
            columns = ", ".join((*bookkeeping.POSITION, "token"))
            ((*row, token),) = session.run(query.format(columns, "thl_position"), (service,))
            ((identity,),) = session.run(query.format("identity", "thl_identity"), (service,))
            self.identity = str(identity)
            head = session.run(query.format("head", "thl_rewound"), (service,))
            position = bookkeeping.position_from(service, row, head[0][0] if head else None)
            columns = "schema_name, table_name, definition"
            tables = [
                from_json(TableName(str(schema), str(table)), str(definition))
                for schema, table, definition in session.run(query.format(columns, "thl_tables"), (service,))
            ]
            excluded = bookkeeping.excluded_from(
                session.run(query.format(bookkeeping.EXCLUDED, "thl_excluded"), (service,))
            )
            schema = self._add_metadata_columns(tables, excluded)
            loads = bookkeeping.loading_from(session.run(query.format(bookkeeping.LOADING, "thl_loading"), (service,)))
            schema, position = bookkeeping.with_loads(schema, position, loads)
            self._position = position
            self._schema.claimed(schema)
            self._create_histories(session, schema)
            self._write(session, self._statements(session).tables(self._schema, NAMES.table))
            self._schema.committed()
            self._commit()
        self.token = int(str(token))
        faults.point("target.after_claim")
        self._file.lend()
        return position

    def stage(self, changes: Sequence[NetChanges], *, last: bool) -> None:
        """Apply the changes in the open transaction; they are invisible until the commit. Ignores `last`."""
        del last
        with translated():
            session = self._begin()
            for net in changes:
                if self._schema.leaves_out(net):
                    continue
                with of_table(net.layout.name), translated():
                    self._schema.tables.check(net.layout)
                    table = self._schema.tables.get(net.layout.name)
                    marks = self._schema.marks(table.name)
                    marked = None if marks is None else marks_of(session, table, marks)
                    if marked is not None and not marked.in_place:
                        check_deletes(session, table)
                    whole = tolerant(with_whole_inserts(net, table), table, self._schema.tables, marked)
                    write_rows(session, table, whole, marked)
                self._written.add(table.name)
                faults.point("target.mid_stage")

    def ddl(self, ddl: Ddl) -> None:
        """Apply the statements' operations in the open transaction."""
        self._schema.add_counts()
        with translated():
            session = self._begin()
            for statement in ddl.statements:
                with planned(self._service, ddl, statement, self._schema, NAMES) as found, translated():
                    for operation in (*found.operations, *found.histories):
                        run(session, operation)
        self.stage(self._schema.statement_rows(ddl), last=False)

    def load(self, event: LoadEvent, ddl: Ddl) -> None:
        """Apply the operations in the open transaction."""
        if event.part is Part.REPAIR:
            with translated():
                self._schema.repair(event.table, partial(check_deletes, self._begin(), in_place=True))
            return
        self._schema.add_counts()
        with translated():
            session = self._begin()
            found = plan_load(
                event,
                ddl,
                self._schema.tables,
                service=self._service,
                now=self._clock.now(),
                consistent=self._position.consistent,
                check=partial(check_deletes, session),
            )
            histories, after = self._schema.create_histories(found.target_schema)
            check_names(NAMES, after)
            with of_table(event.table), translated():
                for operation in (*found.operations, *histories):
                    run(session, operation)
        self._schema.tables = after

    def execute(self, statement: Statement, seqno: Seqno) -> None:
        """Refuse the statement."""
        del seqno
        raise not_executed(statement, "DuckDB")

    def set_metadata(self, values: Sequence[TransactionValue], event: Sequence[TransactionValue] = ()) -> None:
        """Update the rows that have the event's seqno; that reads the tables again."""
        with translated():
            session = self._begin()
            for name, ((first, seqno), *rest) in late_values(
                self._written, self._schema.tables, self._columns, values, event
            ):
                assignments = ", ".join(
                    f"{quoted(column.name)} = {column_literal(column, value)}" for column, value in rest
                )
                session.run(f"UPDATE {session.name(name)} SET {assignments} WHERE {quoted(first.name)} = {seqno}")

    def begin_snapshot(self) -> None:
        """Drop every table of the applier, in the open transaction."""
        with translated():
            session = self._begin()
            for drop in self._schema.begin_snapshot(self._columns, Seqno(self._position.seqno + 1)):
                run(session, drop)
            self._written.clear()

    def done_by_hand(self, ddl: Ddl) -> tuple[TableName, ...]:
        """Compare the definitions in the open transaction."""
        self._schema.add_counts()
        with translated():
            session = self._begin()
            found = done_by_hand(ddl, self._schema.tables, DuckDbDictionary(session))
            self._create_histories(session, found.target_schema)
            self._schema.note_statements(found.statements)
        self.stage(self._schema.statement_rows(ddl), last=False)
        return found.tables

    def exclude(self, tables: Mapping[TableName, Excluded]) -> None:
        """Record the exclusions with the next commit."""
        self._schema.exclude(tables)

    def leave_out(self, event: LeftOut) -> None:
        """Record it in the open transaction."""
        with translated():
            session = self._begin()
            self._write(session, self._statements(session).left_out([event]))

    def commit(self, position: TargetPosition, events: Iterable[AppliedEvent]) -> None:
        """Write the position under the token of `claim`, and commit."""
        with translated():
            session = self._begin()
            faults.point("target.before_merge")  # rows were applied while staging; this is its end
            faults.point("target.before_position")
            shown = replace(position, consistent=self._schema.consistent(otherwise=position.consistent))
            statements = self._statements(session)
            if session.count(statements.position(shown).sql) != 1:
                raise bookkeeping.fenced(self._service, self.token)
            written = statements.after_position(
                self._position,
                position,
                self._schema,
                table_name=session.name,
                target_name=NAMES.table,
                audited=events if self._audit else (),
            )
            self._write(session, written)
            self._write_marks(session)
            faults.point("target.before_commit")
            self._commit()
            self._written.clear()
            self._schema.committed()
            self._position = position
            faults.point("target.after_commit")
            self._file.lend()

    def discard(self) -> None:
        """Roll the open transaction back."""
        with translated():
            self._roll_back()
        self._schema.discard()
        self._written.clear()
        self._file.lend()

    def close(self) -> None:
        """Close the file; an open transaction is rolled back."""
        self._in_transaction = False
        self._file.close()

    def _claim_token(self, service: str, previous_token: int, mark: str) -> None:
        """Begin the transaction of a claim with a new token; wait for other sessions of this process."""
        deadline = self._clock.monotonic() + self._wait
        while True:
            try:
                self._take_token(service, previous_token, mark)
            except duckdb.TransactionException as error:
                self._roll_back()
                if self._clock.monotonic() > deadline:
                    raise TargetUnavailable(
                        f"another session of this process has had an open transaction for {self._wait:g} s: {error}",
                        service=service,
                    ) from error
                self._clock.sleep(0.01)
            except duckdb.Error as error:
                raise connector_error(error) from error
            else:
                return

    def _take_token(self, service: str, previous_token: int, mark: str) -> None:
        session = self._file.session
        session.run("BEGIN")
        self._in_transaction = True
        create(session)
        position = f"{session.bookkeeping}thl_position"
        self._check_schema_version(session, service)
        known = session.run(f"SELECT token FROM {position} WHERE service = ?", (service,))
        claim = f"{session.bookkeeping}thl_claim"
        claims = session.run(f"SELECT token, mark FROM {claim} WHERE service = ?", (service,))
        if known and previous_token and known != [(bookkeeping.last_token(previous_token, mark, claims),)]:
            self._roll_back()
            raise bookkeeping.fenced(service, previous_token)
        if known:
            session.run(f"UPDATE {position} SET token = token + 1 WHERE service = ?", (service,))
        else:
            session.run(f"INSERT INTO {position} (service, token) VALUES (?, 1)", (service,))
        if mark:
            query = f"INSERT OR REPLACE INTO {claim} SELECT service, token, ? FROM {position} WHERE service = ?"
            session.run(query, (mark, service))
        session.run(
            f"INSERT INTO {session.bookkeeping}thl_identity VALUES (?, ?) ON CONFLICT DO NOTHING",
            (service, uuid4().hex),
        )

    def _check_schema_version(self, session: FileSession, service: str) -> None:
        """Refuse a position of a newer version; end the transaction then."""
        position = f"{session.bookkeeping}thl_position"
        columns = "SELECT column_name FROM duckdb_columns() WHERE database_name = current_catalog()"
        if ("schema_version",) not in session.run(f"{columns} AND schema_name = 'thl' AND table_name = 'thl_position'"):
            session.run(f"ALTER TABLE {position} ADD COLUMN schema_version INTEGER DEFAULT 1")
        found = session.run(f"SELECT schema_version FROM {position} WHERE service = ?", (service,))
        version = int(str(found[0][0])) if found else bookkeeping.BASE_VERSION
        try:
            bookkeeping.check_schema_version(service, version)
        except ConfigError:
            self._roll_back()
            raise

    def _add_metadata_columns(self, tables: Sequence[Table], excluded: Mapping[TableName, Excluded]) -> TargetSchema:
        """Add missing metadata columns to tables; excluded tables stay as they are."""
        session = self._file.session
        found = missing_columns(
            tables,
            self._columns,
            excluded,
            existing_columns=lambda name: column_names_of(session, name),
            name=session.name,
            column=lambda column: (quoted(column.name), duckdb_type(column)),
        )
        check_names(NAMES, found.target_schema)
        for statement in found.statements:
            session.run(statement)
        update = f"UPDATE {session.bookkeeping}thl_tables SET definition = ? WHERE service = ? AND schema_name = ?"
        for table in found.tables:
            session.run(f"{update} AND table_name = ?", (to_json(table), self._service, *table.name))
        return found.target_schema

    def _create_histories(self, session: FileSession, schema: TargetSchema) -> None:
        """Create the histories that tables of a schema lack, and change to the schema with them."""
        operations, after = self._schema.create_histories(schema)
        check_names(NAMES, after)
        for operation in operations:
            run(session, operation)
        self._schema.tables = after

    def _begin(self) -> FileSession:
        """Open the transaction unless it is open, and check that no newer applier has claimed the file.

        The token is written: so no other session of this process can commit a claim until this transaction ends.
        """
        session = self._file.session
        if self._in_transaction:
            return session
        session.run("BEGIN")
        self._in_transaction = True
        # DuckDB does not write a value that is there already.
        update = f"UPDATE {session.bookkeeping}thl_position SET token = -token WHERE service = ? AND token = ?"
        try:
            owned = session.run(update, (self._service, self.token)) == [(1,)]
            session.run(update, (self._service, -self.token))
        except duckdb.TransactionException:  # a claim that is not yet committed has written it
            owned = False
        if not owned:
            self._roll_back()
            raise bookkeeping.fenced(self._service, self.token)
        return session

    def _commit(self) -> None:
        session = self._file.session
        with self._file.private():
            session.run("COMMIT")
        self._in_transaction = False

    def _roll_back(self) -> None:
        if self._in_transaction:
            self._file.session.run("ROLLBACK")
            self._in_transaction = False

    def _statements(self, session: FileSession) -> CommitStatements:
        return CommitStatements(dialect(session), self._service, self.token, self._clock.now())

    def _write(self, session: FileSession, statements: Iterable[CommitStatement]) -> None:
        for statement in statements:
            session.run(statement.sql)

    def _write_marks(self, session: FileSession) -> None:
        """Drop the tables of marks that no load needs any more, and create those that one needs."""
        old, new = self._schema.changed_marks()
        for name in old:
            session.run(f"DROP TABLE IF EXISTS {session.bookkeeping}{quoted(name)}")
        for name, table in new:
            session.run(create_marks(session, name, table))
