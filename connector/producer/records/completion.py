"""Completes the changes of each event before it is encoded, and keeps the rows that it leaves.

It stands behind the filters, so the store holds what is published. An XA transaction is completed at its XA COMMIT,
when it becomes an event. Events of loads bring the rows that are there; they are published as they are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from connector.config.filters import Filters
from connector.errors import Unsupported
from connector.log.ids import Epoch, Kind, Outcome, Seqno
from connector.log.transaction.batch import Rows, Statement, TransactionBatch
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent
from connector.log.transaction.position import SourcePosition
from connector.log.transaction.statement_options import SAVEPOINTS
from connector.log.transaction.xa import PREPARED
from connector.patterns import table_pattern
from connector.producer.records.filter_history import FilterHistory
from connector.producer.records.published_defaults import PublishedDefaults
from connector.producer.records.row_completer import (
    DifferencesFailed,
    KeyMissing,
    RowCompleter,
    UnknownDefault,
    UnknownRow,
)
from connector.producer.records.row_errors import (
    damaged_rows,
    differences_failed,
    key_missing,
    unknown_default,
    unknown_row,
)
from connector.producer.records.table_entry import TableEntry, Unknown
from connector.producer.records.tables import PublishedTables
from connector.records.versions import Versions

OTHER_FILTERS: Final = "an XA transaction was prepared under other source.filters than it was committed"
STOPPED_LOAD: Final = "its load was cancelled, or has stopped"
FLUSH_SECONDS: Final = 10.0  # for which versions are only in memory at most, while the service is quiet

Changes = list[Rows | Statement]


class AwaitedLoads(Protocol):
    """The loads that a producer has still to end."""

    def awaits(self, table: TableName, load: str, *, everywhere: bool = False) -> bool:
        """True if a load of a whole table is asked for, or under way.

        Args:
            table: the table, by its name in the log.
            load: the ID of the load that has begun; "": none has.
            everywhere: only if it is for all targets.
        """


class EventCompleter:
    """Completes the events of one log, in their order.

    Args:
        versions: the store, at the log's last event.
        partial: patterns of the tables whose images may stay partial.
        history: the filters of the log's epochs; None: they have never changed.
        filters: those of the producer.
        service: the service, for errors.

    Attributes:
        loads: the loads of the producer; None: each that has begun goes on until its end.
    """

    def __init__(
        self,
        versions: Versions,
        partial: Sequence[str] = (),
        history: FilterHistory | None = None,
        filters: Filters | None = None,
        service: str | None = None,
    ) -> None:
        self._service = service
        self.loads: AwaitedLoads | None = None
        self.versions = versions
        self._history = history or FilterHistory()
        self._epoch = versions.epoch  # that under whose filters the rows of the tables are published
        self._flush_at = 0.0
        self.tables = PublishedTables(versions, PublishedDefaults(filters or Filters()))
        self._patterns = [table_pattern(pattern) for pattern in partial]
        self._allowed: dict[TableName, bool] = {}
        self._kind = Kind.TRANSACTION
        self._load: LoadEvent | None = None
        self._begun = SourcePosition("", 0)  # the open event, in the source's log
        self._prepared = ""  # of an XA transaction: when it was prepared
        # By ID what `prefetch` has read, while the store still has it; as rows of the table that it was then.
        self._read: tuple[int, dict[int, tuple[Rows, RowCompleter]]] = 0, {}
        self._lenient = False  # what is read is published: rows that are not known stay so

    def follow(self, batch: TransactionBatch, seqno: Seqno, epoch: Epoch) -> None:
        """Follow a batch of an event that the log has: what cannot be completed there is not known here."""
        if batch.ending is not None and batch.ending.outcome is Outcome.VOID:
            self.go_back(Seqno(seqno - 1))
            self.pass_over(seqno, epoch)
            return
        self._lenient = True
        try:
            self.complete(batch, seqno, epoch)
        finally:
            self._lenient = False

    def enter(self, epoch: Epoch, seqno: Seqno) -> None:
        """Drop the rows of tables that the filters of later epochs publish otherwise, and definitions that were unseen.

        Args:
            epoch: the epoch of the next event.
            seqno: that event.
        """
        entries = {entry.table.name: entry for entry in self.tables}
        for one in self._history.changed([entry.table for entry in entries.values()], self._epoch, epoch):
            if entries[one.name].keyed or entries[one.name].table.key or not one.followed:
                self.tables.drop_rows(one.name, one.why, seqno, defined=one.followed)
        self._epoch = epoch

    def pass_over(self, seqno: Seqno, epoch: Epoch) -> None:
        """Follow an event that changes no row."""
        if epoch != self._epoch:
            self.enter(epoch, seqno)
        self.versions.finish(seqno, epoch)

    def rest(self, now: float) -> None:
        """Write now and then what is only in memory; called between two batches.

        Args:
            now: seconds of a monotonic clock.
        """
        if now >= self._flush_at:
            self.versions.rest()
            self._flush_at = now + FLUSH_SECONDS

    def complete(self, batch: TransactionBatch, seqno: Seqno, epoch: Epoch) -> TransactionBatch:
        """Complete the next batch.

        Args:
            batch: the batch, of the event that is open.
            seqno: the event.
            epoch: its epoch.

        Returns:
            The batch with whole images.

        Raises:
            Unsupported: an image lacks columns, and the store does not know their values.
            RecordsDamaged, DiskUnavailable: of the store.
        """
        begin = batch.begin
        if epoch != self._epoch:
            self.enter(epoch, seqno)
        if begin is not None:
            self._kind, self._begun = begin.kind, begin.start
            self._load = LoadEvent.of(begin.metadata) if begin.kind is Kind.LOAD else None
            self._prepared = begin.metadata.get(PREPARED, "")
            if begin.metadata.get("snapshot") == "begin":
                self.tables.forget_all(seqno)
        time = 0 if batch.ending is None else batch.ending.commit_time
        changes: Changes = []
        for change in batch.changes:
            if isinstance(change, Statement):
                self._statement(change, seqno, time)
                changes.append(change)
            else:
                changes += self._rows(change, seqno)
        if self._load is not None and self._load.edge and begin is not None:
            statements = [one for one in batch.changes if isinstance(one, Statement)]
            self.tables.apply_load_event(self._load, statements, seqno, time)
        if batch.ending is not None:
            if self._lenient and self._prepared:  # before there was a store, maybe under other filters
                for one in self._history.since_prepared([entry.table for entry in self.tables], self._prepared, epoch):
                    self.tables.drop_rows(one.name, OTHER_FILTERS, seqno)
            self.versions.finish(seqno, epoch)
        return TransactionBatch(begin, joined(changes), batch.ending)

    def prefetch(self, items: Iterable[object]) -> None:
        """Read the rows of the next transactions at once: many are small.

        Args:
            items: the items that are completed next; others than batches count for nothing.
        """
        keys: list[bytes] = []
        read: dict[int, tuple[Rows, RowCompleter]] = {}
        for item in items:
            if not isinstance(item, TransactionBatch):
                continue
            for change in item.changes:
                completer = self.tables.cached(change.layout) if isinstance(change, Rows) else None
                if completer is None or not isinstance(change, Rows):
                    continue
                try:
                    keys += completer.keys(change)
                except ValueError:
                    return  # found again, and told, when it is completed
                read[id(change)] = change, completer
        self.versions.fetch(dict.fromkeys(keys))
        self._read = self.versions.forgot, read

    def go_back(self, seqno: Seqno) -> None:
        """Drop the event that is open, and what the store has of later events than this one."""
        self.versions.go_back(seqno)
        self.tables.read()
        self._epoch = self.versions.epoch

    def close(self) -> None:
        """Write what is only in memory, and close the store. May be repeated."""
        self.versions.close()

    def discard(self) -> None:
        """Close a damaged store, so that the next one to open it begins it again. May be repeated."""
        self.versions.discard()

    def _statement(self, statement: Statement, seqno: Seqno, time: int) -> None:
        if statement.sql.startswith(SAVEPOINTS) or self._kind is Kind.LOAD:
            return
        if self._kind is not Kind.DDL and self._lenient:
            self.tables.forget_affected(statement, "a change of it is logged as a statement", seqno)
            return
        if self._kind is not Kind.DDL:
            raise Unsupported(
                "a change is logged as a statement, so the record store cannot know the rows that it changes",
                hint="SET GLOBAL binlog_format = ROW on the source; or no store: leave source.records.dir empty",
                schema=statement.schema or None,
                **self._where(seqno),
            )
        self.tables.apply_statement(statement, seqno, time)

    def _rows(self, rows: Rows, seqno: Seqno) -> Iterable[Rows]:
        layout = rows.layout
        if not layout.key and (self._kind is Kind.LOAD or not (rows.before or rows.after)):
            return (rows,)
        versions = self.versions
        completer = self.tables.cached(layout)
        entry = self.tables.entry_of(layout, seqno) if completer is None else self.tables.entry(layout.name)
        completer = completer or self.tables.completer_of(layout, entry)
        try:
            _, read_by = self._read[1].get(id(rows), (rows, None))
            if self._read[0] != versions.forgot or read_by is not completer:
                versions.fetch(completer.keys(rows))
            if self._load is not None and (rows.before or rows.after):
                self._deleted(completer.keys(rows), seqno)
                return (rows,)
            completed, grown = completer.complete(
                rows,
                seqno,
                versions.open,
                versions.known,
                lambda version: self.tables.current(version, completer.definition),
                self._unknown(entry),
                self._is_brought(entry),
            )
        except UnknownRow as error:
            raise unknown_row(layout, error, self._why_unknown(entry), self._where(seqno)) from error
        except UnknownDefault as error:
            raise unknown_default(layout, error, self._where(seqno)) from error
        except KeyMissing as error:
            if self._allows(layout.name):
                return (rows,)
            raise key_missing(layout, error, self._where(seqno)) from error
        except DifferencesFailed as error:
            raise differences_failed(layout, error, self._where(seqno)) from error
        except ValueError as error:
            raise damaged_rows(layout, error, self._where(seqno)) from error
        versions.grew(grown, seqno)
        if completer.lost:
            completer.lost = False
            self.tables.lose(layout.name, seqno)
        return completed

    def _deleted(self, keys: Sequence[bytes], seqno: Seqno) -> None:
        """Delete the keys that a repair has not found on the source."""
        for key in keys:
            self.versions.put(key, None)
        self.versions.grew(sum(map(len, keys)), seqno)

    def _unknown(self, entry: TableEntry) -> Unknown:
        awaited = self._is_awaited(entry)
        if awaited and entry.loading and entry.everywhere:
            return Unknown.FOLLOWED if self._lenient else Unknown.DELETED
        return Unknown.STAYS if awaited or self._allows(entry.table.name) else Unknown.REFUSED

    def _is_awaited(self, entry: TableEntry) -> bool:
        """True if a load brings the rows of a table that are not known."""
        if self._lenient or self.loads is None:
            return entry.loading
        return self.loads.awaits(entry.table.name, entry.load)

    def _is_brought(self, entry: TableEntry) -> bool:
        """True if a load for all targets brings the rows of a table that are not known."""
        if self._lenient or self.loads is None:
            return entry.loading and entry.everywhere
        return self.loads.awaits(entry.table.name, entry.load, everywhere=True)

    def _allows(self, name: TableName) -> bool:
        if self._lenient:
            return True
        found = self._allowed.get(name)
        if found is None:
            found = self._allowed[name] = any(one.finds(*name) for one in self._patterns)
        return found

    def _why_unknown(self, entry: TableEntry) -> str:
        if not entry.loading:
            return entry.reason
        return "its load is for some targets alone" if self._is_awaited(entry) else STOPPED_LOAD

    def _where(self, seqno: Seqno) -> dict[str, object]:
        """The ids of the open event, for errors; an event that is read from the log has no file."""
        begun = self._begun
        file, pos = (begun.file, begun.offset) if begun.file else (None, None)
        return {"service": self._service, "seqno": seqno, "file": file, "pos": pos}


def joined(changes: Changes) -> Changes:
    """Join completed rows of one table and action that follow each other, as those of whole images are."""
    if len(changes) < 2 or not any(isinstance(one, Rows) and one.logged is not None for one in changes):
        return changes
    found: Changes = []
    run: list[Rows] = []
    for change in changes:
        if isinstance(change, Rows) and run and _alike(run[0], change):
            run.append(change)
            continue
        if run:
            found.append(_one(run))
        run = [change] if isinstance(change, Rows) else []
        if not isinstance(change, Rows):
            found.append(change)
    if run:
        found.append(_one(run))
    return found


def _alike(first: Rows, second: Rows) -> bool:
    whole = not (first.before or first.after or second.before or second.after)
    return whole and first.layout is second.layout and first.action is second.action and first.query == second.query


def _one(run: Sequence[Rows]) -> Rows:
    if len(run) == 1:
        return run[0]
    ends, start = array("Q"), 0
    for rows in run:
        ends.extend(array("Q", (start + end for end in rows.ends)))
        start += len(rows.data)
    made = Rows(run[0].layout, run[0].action, b"".join(rows.data for rows in run), ends, query=run[0].query)
    made.logged = b"".join(rows.data if rows.logged is None else rows.logged for rows in run)
    return made
