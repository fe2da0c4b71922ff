"""MySQL or MariaDB as a target.

Rows are applied at once in the open transaction, as a replica applies them: other sessions do not see them before the
commit, which also writes the position. DDL, which MySQL commits by itself, waits for the commit or for the first rows
after it, and is executed exactly once (`once`); between a DDL statement and its commit readers already see the new
definition. Fencing is in `fence`; each commit also compares the token.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Final, Literal

import pymysql
from pydantic import SecretStr
from pymysql.constants import ER

from connector import failpoints as faults
from connector.clock import Clock
from connector.ddl.syntax.tokens import quoted
from connector.errors import TargetDiffers
from connector.log.compact.history import HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.compact.metadata_columns import Value as TransactionValue
from connector.log.compact.net_changes import AppliedEvent, Ddl, LeftOut, NetChanges
from connector.log.ids import Seqno
from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.position import TargetPosition
from connector.targets import bookkeeping
from connector.targets.commit_statements import CommitStatements
from connector.targets.ddl.by_hand import done_by_hand
from connector.targets.ddl.loads import plan_load, tolerant
from connector.targets.ddl.planned import planned
from connector.targets.default_values import with_whole_inserts
from connector.targets.histories import late_values
from connector.targets.logged_statements import not_executed
from connector.targets.mysql.bookkeeping import DIALECT
from connector.targets.mysql.claim import claim
from connector.targets.mysql.ddl.auxiliary_ddl import AuxiliaryDdl
from connector.targets.mysql.ddl.dictionary import MySqlDictionary
from connector.targets.mysql.ddl.once import DdlOnce
from connector.targets.mysql.ddl.pending_ddl import PendingDdl
from connector.targets.mysql.ddl.source_ddl import PlannedDdl, definition
from connector.targets.mysql.fence import translated_or_fenced
from connector.targets.mysql.logged_statements import StatementExecutor
from connector.targets.mysql.open_transaction import OpenTransaction
from connector.targets.mysql.rows.marks import marks_of, sweep
from connector.targets.mysql.rows.row_writer import RowWriter
from connector.targets.mysql.server.catalog_checks import check_deletes
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.server.errors import code_of, translated
from connector.targets.mysql.server.table_facts import KnownFacts
from connector.targets.mysql.sql.literals import literal
from connector.targets.mysql.sql.names import MySqlNames, table_name
from connector.targets.names import check_names
from connector.targets.operations import CreateTable, Operation, Sweep, Truncate, swept
from connector.targets.staged_schema import StagedSchema
from connector.targets.target_schema import Excluded, TargetSchema, of_table

LOG: Final = logging.getLogger(__name__)


class MySqlTarget:
    """A MySQL or MariaDB server.

    Args:
        url: `mysql://user:password@host:port`; read again for each session.
        clock: for `applied_at`.
        audit: true to write `thl_applied`.
        columns: the metadata columns of every table and of the layouts of staged rows.
        history: the tables that have a history; None: there are none.
        binary_log: false: the server does not log what the applier does.
        definitions: source: DDL is executed as the source executed it; plain: tables have columns and a key alone.
        executes_statements: true if changes that were logged as statements are executed; else they are refused.
    """

    def __init__(
        self,
        url: SecretStr,
        clock: Clock,
        *,
        audit: bool = False,
        columns: MetadataColumns | None = None,
        history: HistoryTables | None = None,
        binary_log: bool = True,
        definitions: Literal["source", "plain"] = "source",
        executes_statements: bool = False,
    ) -> None:
        self._url = url
        self._clock = clock
        self._audit = audit
        self._columns = columns.columns if columns else ()
        self._binary_log = binary_log
        self._of_source = definitions == "source"
        self._executes_statements = executes_statements
        self._service = ""
        self.token = 0
        self.identity = ""
        self._position = TargetPosition(service="")  # as the last commit left it
        self._history = history
        self._schema = StagedSchema(history)
        self._left_out: list[LeftOut] = []
        self._statement_rows: list[NetChanges] = []  # of histories; staged once the statements are executed
        self._once: DdlOnce | None = None
        self._use(self._session())

    def _session(self) -> ServerSession:
        return ServerSession(self._url.get_secret_value(), "thl", binary_log=self._binary_log, files=True)

    def _use(self, session: ServerSession) -> None:
        """Use a session, in which nothing is staged."""
        self._db = session
        self._names = MySqlNames(folds=session.folds)
        self._transaction = OpenTransaction(session, self._service)
        self._statements = StatementExecutor(session) if self._executes_statements else None
        self._pending = PendingDdl(session, of_source=self._of_source, executes_statements=self._executes_statements)
        self._facts = KnownFacts(session, of_source=self._of_source)
        self._auxiliary = AuxiliaryDdl(session, self._service)
        self._left_out.clear()
        self._statement_rows.clear()

    @property
    def target_schema(self) -> TargetSchema:
        """The tables that the applier created, after the staged changes."""
        return self._schema.tables

    def claim(self, service: str, previous_token: int = 0, mark: str = "") -> TargetPosition:
        """Claim the target: ends the session of an older applier."""
        self._service = service
        alive = self._db.is_alive()
        self._use(self._db if alive else self._session())
        with self._translated_or_fenced():
            if self._statements is not None:
                self._statements.check_server()
            found = claim(self._db, service, previous_token, mark, columns=self._columns, history=self._history)
            self.token, self.identity = found.token, found.identity
            self._once = DdlOnce(self._db, service, self.identity)
            self._once.claim()
            self._auxiliary.drop_unused()
            self._position = found.position
            self._schema.claimed(found.schema)
        faults.point("target.after_claim")
        return found.position

    def stage(self, changes: Sequence[NetChanges], *, last: bool) -> None:
        """Apply the changes in the open transaction, after the DDL of their event."""
        del last  # rows stay locked until the commit, as on a replica
        with self._translated_or_fenced():
            self._run_ddl()
            rows, self._statement_rows = self._statement_rows, []
            applied = [net for net in (*rows, *changes) if not self._schema.leaves_out(net)]
            for net in applied:
                with of_table(net.layout.name):
                    self._schema.tables.check(net.layout)
                    table = self._schema.tables.get(net.layout.name)
                    self._auxiliary.find_by(net, table, in_transaction=self._transaction.is_open)
            self._transaction.begin(self.token)
            for net in applied:
                with of_table(net.layout.name), translated():
                    self._apply(net)
                faults.point("target.mid_stage")

    def _apply(self, net: NetChanges) -> None:
        table = self._schema.tables.get(net.layout.name)
        if self._statements is not None:
            self._statements.check_rows(table.name)
        marks = self._schema.marks(table.name)
        marked = None if marks is None else marks_of(self._db, table, marks)
        if marked is not None and not marked.in_place:
            check_deletes(self._db, table)
        elif table.name in self._schema.tables.loading:  # its rows are replaced: by deletes beside other unique indexes
            check_deletes(self._db, table, in_place=True)
        whole = tolerant(with_whole_inserts(net, table), table, self._schema.tables, marked)
        RowWriter(self._db, table, whole, marked, self._facts.of(net, table)).write()
        self._transaction.written.add(table.name)

    def execute(self, statement: Statement, seqno: Seqno) -> None:
        """Execute a statement in the open transaction."""
        del seqno
        if self._statements is None:
            raise not_executed(statement, self._db.product)
        if replay.LOAD_BLOCK in statement.options:
            self._statements.add_block(statement)
            return
        with self._translated_or_fenced():
            self._run_ddl()
            self._transaction.begin(self.token)
            self._statements.execute(statement, self._schema.tables)
        faults.point("target.mid_stage")

    def ddl(self, ddl: Ddl) -> None:
        """Plan the statements' operations; the first rows, or the commit, execute them."""
        self._change_definitions()
        histories: list[CreateTable] = []
        for statement in ddl.statements:
            before = self._schema.tables
            with planned(self._service, ddl, statement, self._schema, self._names) as found:
                self._pending.add(ddl.seqno, [PlannedDdl(found.operations, statement, before, ddl.commit_time)])
                histories += found.histories
        self._add_histories(ddl, histories)
        self._statement_rows += self._schema.statement_rows(ddl)

    def _add_histories(self, ddl: Ddl, operations: Sequence[CreateTable]) -> None:
        """Create histories after all statements of the event, whose numbers they leave as they are."""
        if operations:
            self._transaction.check_absent()
            self._pending.add(ddl.seqno, [PlannedDdl(tuple(operations), None, self._schema.tables)])

    def load(self, event: LoadEvent, ddl: Ddl) -> None:
        """Plan the operations; those that change rows are applied in the open transaction."""
        with self._translated_or_fenced():
            if event.part is Part.REPAIR:
                self._schema.repair(event.table, partial(check_deletes, self._db, in_place=True))
                return
            self._auxiliary.definitions_changed()
            self._schema.add_counts()
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
            if self._of_source and any(isinstance(one, CreateTable) for one in found.operations):
                self._transaction.check_absent()
                self._pending.add(ddl.seqno, definition(event.table, ddl, self._schema.tables))
            else:
                for operation in found.operations:
                    with of_table(event.table), translated():
                        self._load(operation, ddl.seqno)
            self._add_histories(ddl, histories)
            self._schema.tables = after

    def _load(self, operation: Operation, seqno: Seqno) -> None:
        match operation:
            case Truncate(table):  # as a statement that can be rolled back
                self._transaction.begin(self.token)
                self._db.query(f"DELETE FROM {table_name(table.name)}")
            case Sweep(table, marks):
                self._transaction.begin(self.token)
                rows = self._db.query(sweep(table, marks))
                LOG.info("a table is whole: it lost rows that the load did not bring", extra=swept(operation, rows))
            case _:
                self._transaction.check_absent()
                self._pending.add(seqno, [PlannedDdl((operation,), None, self._schema.tables)])

    def set_metadata(self, values: Sequence[TransactionValue], event: Sequence[TransactionValue] = ()) -> None:
        """Update the rows that have the event's seqno; that reads the tables again."""
        if self._statement_rows:
            self.stage((), last=False)
        with self._translated_or_fenced():
            for name, ((first, seqno), *rest) in late_values(
                self._transaction.written, self._schema.tables, self._columns, values, event
            ):
                assignments = ", ".join(f"{quoted(column.name)} = {literal(value)}" for column, value in rest)
                where = f"{quoted(first.name)} = {literal(seqno)}"
                self._db.query(f"UPDATE {table_name(name)} SET {assignments} WHERE {where}")

    def begin_snapshot(self) -> None:
        """Drop every table of the applier before the first rows, or at the commit."""
        self._change_definitions()
        first, before = Seqno(self._position.seqno + 1), self._schema.tables
        self._pending.add(first, [PlannedDdl(self._schema.begin_snapshot(self._columns, first), None, before)])

    def done_by_hand(self, ddl: Ddl) -> tuple[TableName, ...]:
        """Compare the definitions."""
        self._schema.add_counts()
        self._auxiliary.definitions_changed()
        self._facts.forget()
        with self._translated_or_fenced():
            found = done_by_hand(ddl, self._schema.tables, MySqlDictionary(self._db, computed=self._of_source))
        histories, after = self._schema.create_histories(found.target_schema)
        check_names(self._names, after)
        self._add_histories(ddl, histories)
        self._schema.tables = after
        self._schema.note_statements(found.statements)
        self._statement_rows += self._schema.statement_rows(ddl)
        return found.tables

    def exclude(self, tables: Mapping[TableName, Excluded]) -> None:
        """Record the exclusions with the next commit."""
        self._schema.exclude(tables)

    def leave_out(self, event: LeftOut) -> None:
        """Record the event with the next commit."""
        self._left_out.append(event)

    def commit(self, position: TargetPosition, events: Iterable[AppliedEvent]) -> None:
        """Commit what was staged.

        1. The DDL that is left, and tables of marks: MySQL commits each statement by itself (`once`).
        2. The position, under the token of `claim`: no row is found after a newer claim.
        3. The other bookkeeping, and the end of the event's row in `thl_ddl`.
        4. COMMIT, of these and of the rows.
        5. What need not be atomic: indexes that had to wait, and drops of unused tables of marks.
        """
        if self._statement_rows:
            self.stage((), last=True)
        with self._translated_or_fenced():
            self._run_ddl()
            self._auxiliary.create_marks(self._schema)
            once = self._claimed()
            if once.unfinished:
                once.resolve(position.seqno)
            self._transaction.begin(self.token)
            faults.point("target.before_merge")  # rows were applied while staging; this is its end
            faults.point("target.before_position")
            statements = CommitStatements(DIALECT, self._service, self.token, self._clock.now())
            shown = replace(position, consistent=self._schema.consistent(otherwise=position.consistent))
            if self._db.query(statements.position(shown).sql) != 1:
                raise bookkeeping.fenced(self._service, self.token)
            written = statements.after_position(
                self._position,
                position,
                self._schema,
                table_name=table_name,
                target_name=self._names.table,
                left_out=self._left_out,
                audited=events if self._audit else (),
            )
            for statement in written:
                self._write(statement.sql)
            unused = self._auxiliary.unused(self._schema)
            for sql in [*unused, *([once.finish()] if once.unfinished else [])]:
                self._write(sql)
            faults.point("target.before_commit")
            self._transaction.commit()
            faults.point("target.after_commit")
            once.committed()
            self._schema.committed()
            self._position = position
            self._left_out.clear()
            self._auxiliary.after_commit(unused=bool(unused))

    def _write(self, sql: str) -> None:
        try:
            self._db.query(sql)
        except pymysql.MySQLError as error:
            if code_of(error) != ER.DUP_ENTRY:
                raise
            raise TargetDiffers(f"the target's bookkeeping has a row already: {error.args[1]}") from error

    def discard(self) -> None:
        """Roll the open transaction back. DDL that was executed for its event's first rows stays, and is known."""
        with self._translated_or_fenced():
            self._transaction.rollback()
        self._schema.discard()
        self._pending.forget()
        self._facts.forget()
        self._auxiliary.forget()
        if self._statements is not None:
            self._statements.forget()
        self._left_out.clear()
        self._statement_rows.clear()

    def close(self) -> None:
        """End the session; an open transaction is rolled back."""
        self._db.close()

    def _change_definitions(self) -> None:
        """Begin a change of definitions, which commits by itself."""
        self._transaction.check_absent()
        self._auxiliary.definitions_changed()
        self._schema.add_counts()

    def _run_ddl(self) -> None:
        """Execute the DDL that is not executed yet."""
        if self._pending:
            self._facts.forget()
            if self._statements is not None:
                self._statements.definitions_changed()
            self._pending.run(self._claimed())

    def _claimed(self) -> DdlOnce:
        if self._once is None:
            raise RuntimeError("the target is not claimed")
        return self._once

    def _translated_or_fenced(self) -> AbstractContextManager[None]:
        """Raise MySQL's errors as the connector's; a session that a newer applier has ended is fenced."""
        return translated_or_fenced(self._url, self._service, self.token)
