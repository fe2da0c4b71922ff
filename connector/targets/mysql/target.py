"""MySQL or MariaDB as a target.

Rows are applied at once in the open transaction, as a replica applies them: other sessions do not see them before the
commit, which also writes the position. DDL, which MySQL commits by itself, waits for the commit or for the first rows
after it, and is executed exactly once (`once`); what readers can see between a DDL statement and its commit is the
source's next definition, too.

Fencing: `fence`. The token of `claim` is compared in each commit besides.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from secrets import token_hex
from typing import Literal

import pymysql

from connector import failpoints as faults
from connector import metrics
from connector.clock import Clock
from connector.errors import ConnectorError, Fenced, TargetDiffers, TargetUnavailable, Unsupported
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
from connector.targets.ddl.by_hand import done_by_hand
from connector.targets.ddl.loads import plan_load, tolerant
from connector.targets.ddl.plan import located, plan
from connector.targets.default_values import with_whole_inserts
from connector.targets.mysql.bookkeeping import (
    applied_tables,
    ensure_bookkeeping,
    excluded_tables,
    loading_tables,
    schema_version,
)
from connector.targets.mysql.commit_statements import CommitStatements
from connector.targets.mysql.connection import ServerSession, literal
from connector.targets.mysql.ddl import DdlStep, column_names_of, steps_of
from connector.targets.mysql.dictionary import MySqlDictionary
from connector.targets.mysql.errors import code_of, connector_error, is_lost, translated
from connector.targets.mysql.fence import take_over
from connector.targets.mysql.marks import check_deletes, create_marks, marks_of, sweep, unique_indexes
from connector.targets.mysql.names import MySqlNames, own, quoted, table_name
from connector.targets.mysql.once import DdlOnce
from connector.targets.mysql.rows import RowWriter
from connector.targets.mysql.source_ddl import PlannedDdl, source_steps
from connector.targets.mysql.table_facts import NO_FACTS, TableFacts, facts_of
from connector.targets.mysql.types import mysql_type
from connector.targets.names import check_names
from connector.targets.operations import CreateTable, DropTable, IndexKey, Operation, Sweep, Truncate, swept
from connector.targets.staged_schema import StagedSchema
from connector.targets.table import Table, to_json
from connector.targets.target_schema import Excluded, TargetSchema, of_table
from connector.targets.unique_key_index import UniqueKeyIndex

log = logging.getLogger(__name__)

_DUPLICATE = 1062


class MySqlTarget:
    """A MySQL or MariaDB server.

    Args:
        url: `mysql://user:password@host:port`.
        clock: for `applied_at`.
        audit: true to write `thl_applied`.
        columns: the metadata columns of every table and of the layouts of staged rows.
        binary_log: false: the server does not log what the applier does.
        definitions: source: DDL is executed as the source executed it; plain: tables have columns and a key alone.
    """

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        audit: bool = False,
        columns: MetadataColumns | None = None,
        binary_log: bool = True,
        definitions: Literal["source", "plain"] = "source",
    ) -> None:
        self._url = url
        self._clock = clock
        self._audit = audit
        self._columns = columns.columns if columns else ()
        self._binary_log = binary_log
        self._of_source = definitions == "source"
        self._service = ""
        self.token = 0
        self.identity = ""
        self._position = TargetPosition(service="")  # as the last commit left it
        self._schema = StagedSchema()
        self._db = ServerSession(url, "thl", binary_log=binary_log)
        self._names = MySqlNames(folds=self._db.folds)
        self._once: DdlOnce | None = None
        self._open = False  # a transaction
        self._written: set[TableName] = set()  # tables with rows in it
        self._planned: list[PlannedDdl] = []  # not executed yet
        self._facts: dict[TableName, TableFacts] = {}
        self._ddl_seqno: int | None = None  # of the event whose DDL is or will be executed
        self._left_out: list[LeftOut] = []
        self._unique_key_indexes = UniqueKeyIndex()
        self._indexes: list[IndexKey] = []  # to create after the commit

    @property
    def target_schema(self) -> TargetSchema:
        """The tables that the applier created, after the staged changes."""
        return self._schema.tables

    def claim(self, service: str, previous_token: int = 0) -> TargetPosition:
        """Claim the target: ends the session of an older applier."""
        self._service = service
        if not self._db.is_alive():
            self._db = ServerSession(self._url, "thl", binary_log=self._binary_log)
        with self._speaking():
            ensure_bookkeeping(self._db)
            self._db.query("USE thl")  # names that others may use are whole; DELETE of an alias needs some database
            bookkeeping.check_schema_version(service, schema_version(self._db, service))
            where = f"service = {literal(service)}"
            token = self._db.rows(f"SELECT token FROM thl.thl_position WHERE {where}")
            if previous_token and token != [(previous_token,)]:
                raise _fenced(service, previous_token)
            take_over(self._db, service)
            self._db.query("START TRANSACTION")
            self._db.query(f"INSERT IGNORE INTO thl.thl_position (service, token) VALUES ({literal(service)}, 0)")
            columns = ", ".join(bookkeeping.POSITION)
            (found,) = self._db.rows(f"SELECT {columns}, token FROM thl.thl_position WHERE {where} FOR UPDATE")
            *row, token_before = found
            if previous_token not in (0, token_before):
                raise _fenced(service, previous_token)
            self.token = int(token_before) + 1
            self._db.query(f"UPDATE thl.thl_position SET token = {self.token} WHERE {where}")
            self._db.query(f"INSERT IGNORE INTO thl.thl_identity VALUES ({literal(service)}, {literal(token_hex(16))})")
            ((self.identity,),) = self._db.rows(f"SELECT identity FROM thl.thl_identity WHERE {where}")
            head = self._db.rows(f"SELECT head FROM thl.thl_rewound WHERE {where}")
            position = bookkeeping.position_from(service, row, head[0][0] if head else None)
            tables = applied_tables(self._db, service)
            schema, added = self._missing_metadata(tables, excluded_tables(self._db, service))
            for name, entry in loading_tables(self._db, service).items():
                schema = schema.with_loading(name, entry)
                position = replace(position, consistent=entry.consistent)
            self._db.query("COMMIT")
            self._add_metadata(added)
            self._once = DdlOnce(self._db, service, self.identity)
            self._once.claim()
            self._drop_unused()
            self._position = position
            self._schema.claimed(schema)
            self._forget()
        faults.point("target.after_claim")
        return position

    def stage(self, changes: Sequence[NetChanges], *, last: bool) -> None:
        """Apply the changes in the open transaction, after the DDL of their event."""
        del last  # rows stay locked until the commit, as on a replica
        with self._speaking():
            self._run_ddl()
            applied = [net for net in changes if not self._schema.leaves_out(net)]
            for net in applied:
                with of_table(net.layout.name):
                    self._schema.tables.check(net.layout)
                    self._find_index(net)
            self._begin()
            for net in applied:
                with of_table(net.layout.name), translated():
                    table = self._schema.tables.get(net.layout.name)
                    marks = self._schema.marks(table.name)
                    marked = None if marks is None else marks_of(self._db, table, marks)
                    if marked is not None and not marked.in_place:
                        check_deletes(self._db, table)
                    unique = self._of_source and marked is None and self._has_unique_while_loaded(table)
                    whole = tolerant(with_whole_inserts(net, table), table, self._schema.tables, marked, unique=unique)
                    RowWriter(self._db, table, whole, marked, self._facts_of(net, table)).write()
                self._written.add(table.name)
                faults.point("target.mid_stage")

    def ddl(self, ddl: Ddl) -> None:
        """Plan the statements' operations; the first rows, or the commit, execute them."""
        self._check_alone()
        self._unique_key_indexes.forget()
        self._schema.add_counts()
        for statement in ddl.statements:
            before = self._schema.tables
            try:
                found = plan(statement, before, ddl.commit_time)
                if not found.operations:
                    metrics.ignored_ddl.labels(self._service, found.command).inc()
                check_names(self._names, found.target_schema)
            except ConnectorError as error:
                raise located(error, ddl.seqno, statement, before) from error
            self._planned.append(PlannedDdl(found.operations, statement, before, ddl.commit_time))
            self._schema.tables = found.target_schema
        self._ddl_seqno = ddl.seqno

    def load(self, event: LoadEvent, ddl: Ddl) -> None:
        """Plan the operations; those that change rows are applied in the open transaction."""
        with self._speaking():
            if event.part is Part.REPAIR:
                self._schema.repair(event.table, partial(check_deletes, self._db, in_place=True))
                return
            self._unique_key_indexes.forget()
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
            check_names(self._names, found.target_schema)
            if self._of_source and any(isinstance(one, CreateTable) for one in found.operations):
                self._planned += self._definition(event.table, ddl)
            else:
                for operation in found.operations:
                    with of_table(event.table), translated():
                        self._load(operation)
            self._schema.tables = found.target_schema
            self._ddl_seqno = ddl.seqno

    def _load(self, operation: Operation) -> None:
        match operation:
            case Truncate(table):  # as a statement that can be rolled back
                self._begin()
                self._db.query(f"DELETE FROM {table_name(table.name)}")
            case Sweep(table, marks):
                self._begin()
                rows = self._db.query(sweep(table, marks))
                log.info("a table is whole: it lost rows that the load did not bring", extra=swept(operation, rows))
            case _:
                self._check_alone()
                self._planned.append(PlannedDdl((operation,), None, self._schema.tables))

    def _definition(self, name: TableName, ddl: Ddl) -> Iterator[PlannedDdl]:
        """The statements that make a table whose load begins, each with its plan."""
        self._check_alone()
        known, schema = self._schema.tables.find(name), self._schema.tables
        if known is not None:
            yield PlannedDdl((DropTable(known, optional=True),), None, schema)
        schema = schema.without(name).including(name)
        for statement in ddl.statements:
            found = plan(statement, schema, ddl.commit_time)
            yield PlannedDdl(found.operations, statement, schema, ddl.commit_time)
            schema = found.target_schema

    def set_metadata(self, values: Sequence[TransactionValue]) -> None:
        """Update the rows that have the event's seqno; that reads the tables again."""
        first, *rest = (quoted(column.name) for column in self._columns)
        if not rest:
            return
        assignments = ", ".join(f"{name} = {literal(value)}" for name, value in zip(rest, values[1:], strict=True))
        with self._speaking():
            for name in self._written:
                self._db.query(f"UPDATE {table_name(name)} SET {assignments} WHERE {first} = {literal(values[0])}")

    def begin_snapshot(self) -> None:
        """Drop every table of the applier before the first rows, or at the commit."""
        self._check_alone()
        self._unique_key_indexes.forget()
        self._schema.add_counts()
        before = self._schema.tables
        dropped = tuple(DropTable(table, optional=table.name in before.excluded) for table in before)
        self._planned.append(PlannedDdl(dropped, None, before))
        self._schema.begin_snapshot(self._columns, Seqno(self._position.seqno + 1))
        self._ddl_seqno = self._position.seqno + 1

    def done_by_hand(self, ddl: Ddl) -> tuple[TableName, ...]:
        """Compare the definitions."""
        self._schema.add_counts()
        self._unique_key_indexes.forget()
        with self._speaking():
            found = done_by_hand(ddl, self._schema.tables, MySqlDictionary(self._db, computed=self._of_source))
        check_names(self._names, found.target_schema)
        self._schema.tables = found.target_schema
        return found.tables

    def exclude(self, tables: Mapping[TableName, Excluded]) -> None:
        """Record the exclusions with the next commit."""
        self._schema.exclude(tables)

    def leave_out(self, event: LeftOut) -> None:
        """Record the event with the next commit."""
        self._left_out.append(event)

    def commit(self, position: TargetPosition, events: Iterable[AppliedEvent]) -> None:
        """Execute what DDL is left, write the position under the token of `claim`, and commit."""
        with self._speaking():
            self._run_ddl()
            self._create_marks()
            once = self._claimed()
            if once.unfinished:
                once.resolve(position.seqno)
            self._begin()
            faults.point("target.before_merge")  # rows were applied while staging; this is its end
            faults.point("target.before_position")
            steps = CommitStatements(self._service, self.token, self._clock.now())
            shown = replace(position, consistent=self._schema.consistent(otherwise=position.consistent))
            if self._db.query(steps.position(shown)) != 1:
                raise _fenced(self._service, self.token)
            statements = [*steps.rewind(self._position, position), *self._bookkeeping(steps)]
            if once.unfinished:
                statements.append(once.finish())
            if self._audit:
                statements += steps.audit(events)
            for statement in statements:
                self._write(statement)
            faults.point("target.before_commit")
            self._db.query("COMMIT")
            faults.point("target.after_commit")
            self._open = False
            once.committed()
            self._schema.committed()
            self._position = position
            unused = any(statement.startswith("REPLACE INTO thl.thl_unused") for statement in statements)
            self._after_commit(unused=unused)

    def _bookkeeping(self, steps: CommitStatements) -> Iterator[str]:
        target_names = {table.name: ".".join(self._names.table(table.name)) for table in self._schema.tables}
        yield from steps.tables(self._schema, target_names)
        yield from steps.loads(self._schema)
        yield from steps.exclusions(self._schema)
        yield from steps.left_out(self._left_out)

    def _write(self, statement: str) -> None:
        try:
            self._db.query(statement)
        except pymysql.MySQLError as error:
            if code_of(error) != _DUPLICATE:
                raise
            raise TargetDiffers(f"the target's bookkeeping has a row already: {error.args[1]}") from error

    def discard(self) -> None:
        """Roll the open transaction back. DDL that was executed for its event's first rows stays, and is known."""
        with self._speaking():
            if self._open:
                self._db.query("ROLLBACK")
        self._schema.discard()
        self._forget()

    def close(self) -> None:
        """End the session; an open transaction is rolled back."""
        self._db.close()

    def _forget(self) -> None:
        self._open = False
        self._written.clear()
        self._planned.clear()
        self._facts.clear()
        self._ddl_seqno = None
        self._left_out.clear()
        self._indexes.clear()
        self._unique_key_indexes.forget()

    def _check_alone(self) -> None:
        if self._open:
            raise Unsupported("DDL comes after rows of the same commit: MySQL would commit these before it")

    def _claimed(self) -> DdlOnce:
        if self._once is None:
            raise RuntimeError("the target is not claimed")
        return self._once

    def _begin(self) -> None:
        """Open the transaction unless it is open, and check that no newer applier has claimed the target."""
        if self._open:
            return
        self._db.query("START TRANSACTION")
        found = self._db.rows(f"SELECT token FROM thl.thl_position WHERE service = {literal(self._service)}")
        if found != [(self.token,)]:
            raise _fenced(self._service, self.token)
        self._open = True

    def _run_ddl(self) -> None:
        """Execute what DDL is not executed yet. It commits, so no rows may be there before it."""
        if not self._planned:
            return
        once = self._claimed()
        steps: list[DdlStep] = []
        origins: list[tuple[Statement | None, TargetSchema]] = []
        at = self._ddl_seqno if self._ddl_seqno is not None else self._position.seqno + 1
        existed = partial(once.existed, at)
        for planned in self._planned:
            if self._of_source:
                found = source_steps(planned, self._db, existed)
            else:
                found = steps_of(planned.operations, self._db, existed)
            steps += found
            origins += [(planned.statement, planned.before)] * len(found)
        self._facts.clear()
        done: list[DdlStep] = []
        try:
            once.run(at, steps, done)
        except (ConnectorError, pymysql.MySQLError) as failure:
            error = failure if isinstance(failure, ConnectorError) else connector_error(failure)
            statement, before = origins[min(len(done), len(origins) - 1)]
            if statement is None or isinstance(error, TargetUnavailable):
                raise
            raise located(error, at, statement, before) from failure
        self._planned.clear()

    def _has_unique_while_loaded(self, table: Table) -> bool:
        """True if a table is being loaded, and has the source's unique indexes: its rows are deleted and inserted."""
        if table.name not in self._schema.tables.loading or not unique_indexes(self._db, table.name):
            return False
        check_deletes(self._db, table)
        return True

    def _facts_of(self, net: NetChanges, table: Table) -> TableFacts:
        """What the server has of a table besides the log's values; nothing in tables that the applier made itself.

        Raises:
            Unsupported: rows may have NULL in a column that is NOT NULL.
        """
        if not self._of_source:
            return NO_FACTS
        if nulls := table.nulls_of(net.layout):
            raise Unsupported(
                f"rows may have NULL in columns that are NOT NULL: {', '.join(sorted(nulls))}",
                hint="a rule of source.filters.tables publishes it: ALTER TABLE … MODIFY … NULL on the source, or "
                "target.definitions: plain for a new target",
                table=table.name,
            )
        if table.name not in self._facts:
            self._facts[table.name] = facts_of(self._db, table.name)
        return self._facts[table.name]

    def _find_index(self, net: NetChanges) -> None:
        """Create the index by which the rows of these changes are found, if the table lacks it.

        DDL would commit the open transaction: then the index comes after the commit.
        """
        table = self._schema.tables.get(net.layout.name)
        index = self._unique_key_indexes.missing(net, table)
        if index is None:
            return
        if self._open:
            self._indexes.append(index)
        else:
            self._create_index(index)

    def _create_index(self, index: IndexKey) -> None:
        for step in steps_of([index], self._db):
            self._db.query(step.sql)

    def _create_marks(self) -> None:
        """Create the tables of marks that the commit needs; they are empty, so nothing depends on them yet."""
        for name, table in self._schema.changed_marks()[1]:
            for statement in create_marks(name, table, mariadb=self._db.mariadb):
                self._db.query(statement)

    def _after_commit(self, *, unused: bool) -> None:
        """What DDL may do only outside of a transaction, and what a crash may leave undone."""
        indexes = list(self._indexes)
        self._written.clear()
        self._planned.clear()
        self._ddl_seqno = None
        self._left_out.clear()
        self._indexes.clear()
        for index in indexes:
            with translated():
                self._create_index(index)
        if unused:
            self._drop_unused()

    def _drop_unused(self) -> None:
        where = f"service = {literal(self._service)}"
        for (name,) in self._db.rows(f"SELECT name FROM thl.thl_unused WHERE {where}"):
            self._db.query(f"DROP TABLE IF EXISTS {own(str(name))}")
            self._db.query(f"DELETE FROM thl.thl_unused WHERE {where} AND name = {literal(str(name))}")

    def _missing_metadata(
        self, tables: Sequence[Table], excluded: Mapping[TableName, Excluded]
    ) -> tuple[TargetSchema, list[str]]:
        """The schema with metadata columns, and the statements that add them; excluded tables stay as they are."""
        found = missing_columns(
            tables,
            self._columns,
            excluded,
            existing_columns=lambda name: column_names_of(self._db, name),
            name=table_name,
            column=lambda column: (quoted(column.name), f"{mysql_type(column, mariadb=self._db.mariadb)} NULL"),
        )
        check_names(self._names, found.target_schema)
        where = "WHERE service = {} AND schema_name = {} AND table_name = {}"
        statements = list(found.statements)
        for table in found.tables:
            place = where.format(literal(self._service), literal(table.name.schema), literal(table.name.table))
            statements.append(f"UPDATE thl.thl_tables SET definition = {literal(to_json(table))} {place}")
        return found.target_schema, statements

    def _add_metadata(self, statements: Sequence[str]) -> None:
        """Add the columns. After a crash in between, those that are there already are no error."""
        for statement in statements:
            try:
                self._db.query(statement)
            except pymysql.MySQLError as error:
                if code_of(error) != 1060:  # ER_DUP_FIELDNAME
                    raise

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """Raise MySQL's errors as the connector's; a session that a newer applier has ended is fenced."""
        try:
            yield
        except (pymysql.MySQLError, OSError) as error:
            if is_lost(error) and self._is_fenced():
                raise _fenced(self._service, self.token) from error
            raise connector_error(error) from error
        except TargetUnavailable as error:
            if is_lost(error.__cause__) and self._is_fenced():
                raise _fenced(self._service, self.token) from error
            raise

    def _is_fenced(self) -> bool:
        """Ask the server, in a new session, whether a newer applier has claimed the target."""
        if not self.token:
            return False
        with suppress(ConnectorError, pymysql.MySQLError, OSError):
            session = ServerSession(self._url, "thl")
            try:
                found = session.rows(f"SELECT token FROM thl.thl_position WHERE service = {literal(self._service)}")
            finally:
                session.close()
            return found != [(self.token,)]
        return False


def _fenced(service: str, token: int) -> Fenced:
    return Fenced("a newer `thl apply` or `thl undo` has claimed the target", service=service, token=token)
