"""PostgreSQL as a target.

Rows go to TEMP tables of the session at once (`staging`); DDL waits for the commit. The commit is one transaction: it
writes the position under the token of `claim`, which also makes a newer applier wait; then it applies everything in
order and compares each statement's row count with the log; then COMMIT. A small commit is a COPY per table and two
round trips. With several writers a large commit of rows is divided among further sessions (`divided_commit`).

Fencing: a newer claim changes the token, so the older applier does not find its position and its transaction fails. A
newer applier waits for the running commit of an older one. If that one is stopped inside its commit, the server ends
its session after `connection.IDLE_SECONDS`; it exits as fenced when it continues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial

import psycopg
from psycopg.errors import DeadlockDetected, LockNotAvailable, UniqueViolation
from pydantic import SecretStr

from connector import failpoints as faults
from connector.clock import Clock
from connector.errors import ConfigError, ConnectorError, PreflightError, TargetDiffers
from connector.log.compact.history import EVENT, HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.compact.metadata_columns import Value as TransactionValue
from connector.log.compact.net_changes import AppliedEvent, Ddl, LeftOut, NetChanges
from connector.log.ids import Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import Column, TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.position import TargetPosition
from connector.targets import bookkeeping
from connector.targets.add_metadata_columns import missing_columns
from connector.targets.ddl.by_hand import done_by_hand
from connector.targets.ddl.loads import plan_load, tolerant
from connector.targets.ddl.plan import located
from connector.targets.ddl.planned import planned
from connector.targets.default_values import with_whole_inserts
from connector.targets.logged_statements import not_executed
from connector.targets.marks import Marks
from connector.targets.names import check_names
from connector.targets.operations import AllowNull, Operation
from connector.targets.postgres.bookkeeping import (
    applied_tables,
    ensure_bookkeeping,
    excluded_tables,
    identity,
    last_claim,
    loading_tables,
    schema_version,
    write_claim,
)
from connector.targets.postgres.build_indexes import IndexBuilder, Mode
from connector.targets.postgres.catalog_checks import check_deletes, check_key_collations
from connector.targets.postgres.commit_steps import CommitSteps
from connector.targets.postgres.connection import applier_name, open_session
from connector.targets.postgres.ddl import PostgresDictionary, column_names_of, run
from connector.targets.postgres.divided_commit import DividedCommit
from connector.targets.postgres.errors import connector_error, translated
from connector.targets.postgres.literals import literal
from connector.targets.postgres.marks import check_privilege, marks_of
from connector.targets.postgres.merge import DEFERRED, LateValues, Step, commit, run_steps
from connector.targets.postgres.missing import NAMED, missing_rows, refused_table, repeated
from connector.targets.postgres.names import NAMES, column_name, table_name
from connector.targets.postgres.pending import PendingWork
from connector.targets.postgres.snapshots import SnapshotExporter, check_snapshots
from connector.targets.postgres.staging import Staged
from connector.targets.postgres.types import postgres_type
from connector.targets.staged_schema import StagedSchema
from connector.targets.table import Table, to_json
from connector.targets.target_schema import Excluded, TargetSchema, is_refusal, of_table

_NEEDED_BY_LOADS = frozenset({"thl.thl_loading", "thl.thl_position.schema_version"})


class PostgresTarget:
    """A database of a PostgreSQL server.

    Args:
        url: a URL of libpq; read again for each session.
        clock: for `applied_at`.
        audit: true to write `thl.thl_applied`.
        columns: the metadata columns of every table and of the layouts of staged rows.
        history: the tables that have a history; None: there are none.
        indexes: `target.indexes`.
        writers: `target.writers`.
        snapshot_interval: `target.snapshot_interval`, seconds.
    """

    def __init__(
        self,
        url: SecretStr,
        clock: Clock,
        *,
        audit: bool = False,
        columns: MetadataColumns | None = None,
        history: HistoryTables | None = None,
        indexes: Mode = "none",
        writers: int = 1,
        snapshot_interval: float = 0.0,
    ) -> None:
        self._url = url
        self._clock = clock
        self._audit = audit
        self._columns = columns.columns if columns else ()
        self._service = ""
        self.token = 0
        self.identity = ""
        self._position = TargetPosition(service="")  # as the last commit left it
        self._schema = StagedSchema(history)
        self._left_out: list[LeftOut] = []
        self._lacking: set[str] = set()  # what the bookkeeping lacks
        with translated():
            self._db = open_session(url.get_secret_value(), "thl")
            if self._db.info.parameter_status("server_encoding") != "UTF8":
                raise PreflightError("the target's database is not in UTF-8", hint="CREATE DATABASE … ENCODING 'UTF8'")
        self._pending = PendingWork(self._db, len(self._columns))
        self._indexes = IndexBuilder(self._db, indexes, self._check_token)
        self._divided = DividedCommit(
            self._db, lambda number: self._open_session(f"writer {number + 1}"), writers, len(self._columns)
        )
        self._snapshots = SnapshotExporter(
            lambda: self._open_session("snapshot"), snapshot_interval if writers > 1 else 0.0
        )

    def _open_session(self, name: str) -> psycopg.Connection:
        return open_session(self._url.get_secret_value(), f"thl {self._service} {name}")

    @property
    def target_schema(self) -> TargetSchema:
        """The tables that the applier created, after the staged changes."""
        return self._schema.tables

    def claim(self, service: str, previous_token: int = 0, mark: str = "") -> TargetPosition:
        """Claim the target. Waits for the running commit of an older applier."""
        with translated(), self._db.transaction():
            self._db.execute("SELECT set_config('application_name', %s, false)", (applier_name(service),))
            self._db.execute("SELECT pg_advisory_xact_lock(hashtext('thl'))")
            self._divided.lock(service)
            missing = ensure_bookkeeping(self._db)
            bookkeeping.check_schema_version(service, schema_version(self._db, service, missing))
            claims = last_claim(self._db, service, missing)
            columns = ", ".join(bookkeeping.POSITION)
            claimed = self._db.execute(
                "INSERT INTO thl.thl_position AS p (service, token) VALUES (%s, 1) ON CONFLICT (service) "
                f"DO UPDATE SET token = p.token + 1 WHERE %s::bigint IN (0, p.token) RETURNING {columns}, token",
                (service, bookkeeping.last_token(previous_token, mark, claims)),
            ).fetchone()
            if claimed is None:
                raise bookkeeping.fenced(service, previous_token)
            *row, token = claimed
            write_claim(self._db, service, token, mark, missing)
            self.identity = identity(self._db, service, missing)
            self._service = service
            head = None
            if "thl.thl_rewound" not in missing:
                head = self._db.execute("SELECT head FROM thl.thl_rewound WHERE service = %s", (service,)).fetchone()
            position = bookkeeping.position_from(service, row, head and head[0])
            if self._snapshots.on:
                check_snapshots(missing)
            found = self._divided.claim(service, token, position.seqno, missing)
            if found is not None:
                position = replace(position, intent=found.intent, consistent=found.consistent)
            tables = applied_tables(self._db, service)
            schema = self._add_metadata_columns(tables, excluded_tables(self._db, service, missing))
            loads = loading_tables(self._db, service, missing)
            schema, position = bookkeeping.with_loads(schema, position, loads)
            self._position = position
            self._lacking = missing
            self._schema.claimed(schema)
            self._create_histories()
            check_key_collations(self._db, self._schema.applied())
        self.token = token
        faults.point("target.after_claim")
        with translated():
            self._divided.open()
            if self._snapshots.on:
                self._snapshots.start(service, self.token)
            self._indexes.start(self._schema.whole(), position.seqno, consistent=position.consistent)
        return position

    def stage(self, changes: Sequence[NetChanges], *, last: bool) -> None:
        """Copy the changes to staging tables. Takes no lock on a table of the target, whatever `last` is."""
        with translated():
            if not last:
                self._check_token()  # the commit, which checks it, may be far away
            divided = self._divides(changes, last=last)
            shared: list[NetChanges] = []
            marks = self._marks_of(changes)
            for net in changes:
                if self._schema.leaves_out(net):
                    continue
                with of_table(net.layout.name), translated():
                    whole = self._prepare(net, marks.get(net.layout.name))
                    if divided:
                        shared.append(whole)
                    else:
                        self._pending.stage(whole, marks.get(net.layout.name), last=last)
            if shared:
                self._divided.stage(shared, marks, last=last)

    def _prepare(self, net: NetChanges, marked: Marks | None) -> NetChanges:
        """Compare changes with their table, add what the table needs for them, and complete their inserts."""
        self._schema.tables.check(net.layout)
        made = self._schema.tables.get(net.layout.name)
        locate = partial(_named, net.source_table)
        if nulls := made.nulls_of(net.layout):
            self._pending.add(AllowNull(made, nulls), locate)
            made = replace(made, holds_nulls=made.holds_nulls | nulls)
            self._schema.tables = self._schema.tables.with_table(made)
        self._pending.index(net, made, locate)
        return tolerant(with_whole_inserts(net, made), made, self._schema.tables, marked)

    def _marks_of(self, changes: Sequence[NetChanges]) -> dict[TableName, Marks]:
        """The marks of the tables whose rows change."""
        names = {net.layout.name for net in changes} if self._schema.tables.loading or self._schema.repaired else ()
        found = dict[TableName, Marks]()
        for name in names:
            table, marks = self._schema.tables.find(name), self._schema.marks(name)
            if table is not None and marks is not None:
                found[name] = marks_of(self._db, table, marks)
                if not found[name].in_place:
                    with of_table(name):
                        check_deletes(self._db, table)
        return found

    def _divides(self, changes: Sequence[NetChanges], *, last: bool) -> bool:
        """True if several writers stage these changes: a commit is divided or not as its first changes are."""
        if self._divided.staged or self._divided.finishing:
            return True
        alone = self._pending or self._schema.has_changed or self._schema.repaired
        return not alone and self._divided.accepts(changes, last=last)

    def ddl(self, ddl: Ddl) -> None:
        """Plan the statements' operations; the commit applies them."""
        self._schema.add_counts()
        for statement in ddl.statements:

            def locate(
                error: ConnectorError, at: Statement = statement, before: TargetSchema = self._schema.tables
            ) -> ConnectorError:
                return located(error, ddl.seqno, at, before)

            with planned(self._service, ddl, statement, self._schema, NAMES) as found:
                for operation in (*found.operations, *found.histories):
                    self._pending.add(operation, locate)
        self._pending.definitions_changed()
        self._stage_statements(ddl)

    def _stage_statements(self, ddl: Ddl) -> None:
        """Stage the rows that an event's statements have in histories; such a commit is never divided."""
        with translated():
            for net in self._schema.statement_rows(ddl):
                if not self._schema.leaves_out(net):
                    self._pending.stage(self._prepare(net, None), last=False)

    def load(self, event: LoadEvent, ddl: Ddl) -> None:
        """Plan the operations; the commit applies them."""
        if event.part is Part.REPAIR:
            self._schema.repair(event.table, partial(check_deletes, self._db, in_place=True))
            return
        if lacking := sorted(self._lacking & _NEEDED_BY_LOADS):
            raise PreflightError(
                f"the load of a table needs {', '.join(lacking)}, which the account may not create",
                hint="GRANT CREATE, USAGE ON SCHEMA thl TO …, and for a column start once as the owner of the tables "
                "in thl",
                table=event.table,
            )
        self._schema.add_counts()
        with translated():
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
        check_names(NAMES, after)
        if any(entry.marks and entry.since == ddl.seqno for entry in found.target_schema.loading.values()):
            with translated():
                check_privilege(self._db)
        for operation in (*found.operations, *histories):
            self._pending.add(operation, partial(_named, event.table))
        self._schema.tables = after
        self._pending.definitions_changed()

    def execute(self, statement: Statement, seqno: Seqno) -> None:
        """Refuse the statement."""
        del seqno
        raise not_executed(statement, "PostgreSQL")

    def set_metadata(self, values: Sequence[TransactionValue], event: Sequence[TransactionValue] = ()) -> None:
        """Keep the values; the commit writes them into the staged rows."""
        metadata = LateValues(
            tuple(map(_expression, self._columns, values)), tuple(map(_expression, EVENT.columns[1:], event[1:]))
        )
        self._pending.set_metadata(metadata)
        self._divided.set_metadata(metadata)

    def begin_snapshot(self) -> None:
        """Drop every table of the applier with the commit."""
        for drop in self._schema.begin_snapshot(self._columns, Seqno(self._position.seqno + 1)):
            self._pending.add(drop)
        self._pending.definitions_changed()

    def done_by_hand(self, ddl: Ddl) -> tuple[TableName, ...]:
        """Compare the definitions now; the commit records the event."""
        self._schema.add_counts()
        with translated():
            found = done_by_hand(ddl, self._schema.tables, PostgresDictionary(self._db))
            histories, after = self._schema.create_histories(found.target_schema)
            check_names(NAMES, after)
        for operation in histories:
            self._pending.add(operation)
        self._schema.tables = after
        self._schema.note_statements(found.statements)
        self._pending.definitions_changed()
        self._stage_statements(ddl)
        return found.tables

    def exclude(self, tables: Mapping[TableName, Excluded]) -> None:
        """Record the exclusions with the next commit."""
        self._schema.exclude(tables)

    def leave_out(self, event: LeftOut) -> None:
        """Record the event with the next commit."""
        self._left_out.append(event)

    def commit(self, position: TargetPosition, events: Iterable[AppliedEvent]) -> None:
        """Write the position under the token of `claim`, merge the staging tables, and commit."""
        faults.point("target.before_merge")
        with translated():
            try:
                with self._snapshots.withdrawn() if self._schema.has_changed else nullcontext():
                    if self._divided.staged or self._divided.finishing:
                        self._merge_shares(position, events)
                    else:
                        self._merge(position, events)
                    faults.point("target.before_commit")
                    commit(self._db)
            except (ConnectorError, psycopg.Error) as failure:
                # A newer applier's claim matters more than any other failure.
                self._divided.rollback()
                with suppress(psycopg.Error):
                    self._db.execute("ROLLBACK")
                    self._check_token()
                if isinstance(failure, UniqueViolation):
                    replaced = self._indexes.replace_unique(failure, position.rewound_from)
                    if replaced is not None:
                        raise replaced from failure
                error = failure if isinstance(failure, ConnectorError) else connector_error(failure)
                if is_refusal(error) and not error.tables:
                    error.tables = self._refused()
                if isinstance(error, TargetDiffers) and error is failure:
                    self._name_rows(error)
                with suppress(psycopg.Error):
                    self._divided.name_obstacles(error, waited=isinstance(failure, LockNotAvailable | DeadlockDetected))
                if error is failure:
                    raise
                raise error from failure
            faults.point("target.after_commit")
            self._pending.committed(tables=self._schema.has_changed)
            self._divided.committed(tables=self._schema.has_changed)
        indexed = self._tables_to_index(position)
        self._schema.committed()
        self._position = position
        self._left_out.clear()
        with translated():
            self._indexes.update(indexed, position.seqno)

    def discard(self) -> None:
        """Drop the staged changes."""
        with translated():
            self._pending.discard()
            self._divided.discard()
        self._left_out.clear()
        self._schema.discard()

    def close(self) -> None:
        """End the sessions, and their staging tables with them."""
        self._snapshots.close()
        self._divided.close()
        self._db.close()

    def _add_metadata_columns(self, tables: Sequence[Table], excluded: Mapping[TableName, Excluded]) -> TargetSchema:
        """Add missing metadata columns to tables; excluded tables stay as they are."""
        found = missing_columns(
            tables,
            self._columns,
            excluded,
            existing_columns=lambda name: column_names_of(self._db, name),
            name=table_name,
            column=lambda column: (column_name(column.name), postgres_type(column)),
        )
        check_names(NAMES, found.target_schema)
        for statement in found.statements:
            self._db.execute(statement.encode())
        for table in found.tables:
            self._db.execute(
                "UPDATE thl.thl_tables SET definition = %s WHERE service = %s AND schema_name = %s AND table_name = %s",
                (to_json(table), self._service, *table.name),
            )
        return found.target_schema

    def _create_histories(self) -> None:
        """Create the histories that the tables lack, within the transaction of the claim."""
        operations, after = self._schema.create_histories(self._schema.tables)
        if operations and self._position.intent is not None:  # a writer has committed its share without them
            raise ConfigError(
                "an applier ended within a commit of several writers, and target.history was changed since",
                hint="start once with target.history as it was, then with more tables",
                service=self._service,
            )
        check_names(NAMES, after)
        for operation in operations:
            run(self._db, operation)
        self._schema.tables = after
        run_steps(self._db, list(self._steps().tables(self._schema)))
        self._schema.committed()

    def _tables_to_index(self, position: TargetPosition) -> list[Table]:
        """The tables whose indexes this commit may change: all, once the target is consistent."""
        if not (self._indexes.kept and position.consistent):
            return []
        if not self._position.consistent:
            return self._schema.whole()
        if not self._schema.has_changed:
            return []
        _, changed = self._schema.changed_tables()
        names = {table.name for table in changed} | set(self._schema.changed_loads()[0])
        return [table for table in self._schema.whole() if table.name in names]

    def _merge(self, position: TargetPosition, events: Iterable[AppliedEvent]) -> None:
        """Run everything of a commit but COMMIT."""
        faults.point("target.before_position")
        deferred = [Step(DEFERRED)] if self._indexes.kept else []
        first = [Step("BEGIN"), *deferred, *self._bookkeeping(position, events)]
        self._pending.run(first, self._steps().swept(self._schema))

    def _merge_shares(self, position: TargetPosition, events: Iterable[AppliedEvent]) -> None:
        """Run everything of a divided commit but the last COMMIT."""
        steps = self._steps()
        if self._pending:
            # Columns that may be NULL from now on, and indexes: no reader sees them, and the rows need them.
            self._pending.run([Step("BEGIN"), steps.owned(), *steps.tables(self._schema)])
            commit(self._db)
            self._pending.committed(tables=False)
            self._schema.tables_committed()
        first = Step(DEFERRED if self._indexes.kept else "SELECT")
        before = replace(self._position, consistent=self._position.consistent and not self._schema.tables.loading)
        self._divided.commit(steps, before, position, first, [*self._bookkeeping(position, events)])

    def _steps(self) -> CommitSteps:
        loading = bool(self._schema.tables.loading)
        return CommitSteps(self._service, self.token, self._clock.now(), channels=self._divided.known, loading=loading)

    def _bookkeeping(self, position: TargetPosition, events: Iterable[AppliedEvent]) -> Iterator[Step]:
        steps = self._steps()
        shown = replace(position, consistent=self._schema.consistent(otherwise=position.consistent))
        yield from steps.position(self._position, shown)
        yield from steps.histories(self._position, position, self._schema.tables)
        yield from steps.bookkeeping(self._schema, self._left_out, events if self._audit else ())

    def _work(self) -> Iterator[tuple[psycopg.Connection, Sequence[Staged | Operation]]]:
        """Yield each session that has a part of the commit, with that part."""
        with suppress(psycopg.Error):
            yield self._db, self._pending.work()
        yield from self._divided.work()

    def _refused(self) -> tuple[TableName, ...]:
        """The table whose rows the server refuses; none if it is not known."""
        return tuple(repeated(self._work(), refused_table)[:1])

    def _name_rows(self, error: TargetDiffers) -> None:
        """Add missing rows of one table to an error, if rows are missing."""
        if found := repeated(self._work(), missing_rows):
            rows = [row for one in found if one.table == found[0].table for row in one.rows]
            error.where = {**error.where, "table": found[0].table, "rows": "; ".join(rows[:NAMED])}

    def _check_token(self) -> None:
        token = self._db.execute("SELECT token FROM thl.thl_position WHERE service = %s", (self._service,)).fetchone()
        if token != (self.token,):
            raise bookkeeping.fenced(self._service, self.token)


def _expression(column: Column, value: TransactionValue) -> str:
    return literal(column, value) if value is not None else f"NULL::{postgres_type(column)}"


def _named(name: TableName, error: ConnectorError) -> ConnectorError:
    """The error of an operation that the rows of a table need."""
    if is_refusal(error):
        error.tables = (name,)
    return error
