"""The tables as they are published, from the definitions in the log: which rows belong together, and their columns.

Each table has a number, by which its rows lie in the store. It gets another one, and so has no rows any more, when it
is truncated or created again, and when a definition is not understood: then only a load brings its rows back. All of
this is versioned with the rows, so the store goes back to earlier definitions, too.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from connector.ddl.affected_tables import affected_tables
from connector.errors import ConnectorError, RecordsDamaged, TargetDiffers, Unsupported
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.statement_options import SAVEPOINTS
from connector.producer.records.conversion import DefinitionStep, converted, step_of
from connector.producer.records.published_defaults import PublishedDefaults
from connector.producer.records.row_completer import RowCompleter
from connector.producer.records.table_entry import TableEntry
from connector.records.database import REBUILD
from connector.records.stored import content_of, definition_of, make_version, seqno_of
from connector.records.versions import Versions
from connector.targets.ddl.plan import plan
from connector.targets.operations import AlterTable, CreateTable, DropTable, Operation, RenameTable, Truncate
from connector.targets.table import Table, make_table
from connector.targets.target_schema import TargetSchema

LOG: Final = logging.getLogger(__name__)
TABLE: Final = b"d"
DEFINITION: Final = b"e"
NUMBERS: Final = b"c"
NO_DEFINITION: Final = 0  # of what is no row
LOST: Final = "a partial image changed the key of a row that was not known, or brought a row whose defaults were not"
ASSUMED: Final = "CREATE TABLE IF NOT EXISTS may have found it, with other defaults and rows"
SWEEP_KEYS: Final = 1000  # rows that are deleted at once at the end of a load


@dataclass(slots=True)
class TableCache:
    """Objects that are derived from the entries; made again when the store goes back."""

    entries: dict[TableName, TableEntry] = field(default_factory=dict)
    schema: TargetSchema = field(default_factory=TargetSchema)
    steps: dict[int, DefinitionStep] = field(default_factory=dict)
    completers: dict[TableName, RowCompleter] = field(default_factory=dict)
    numbers: tuple[int, int] = (0, 0)  # the last number of a table, and of a definition


class PublishedTables:
    """The tables of a store.

    Args:
        versions: the store. Its open event gets the changes of definitions.
        defaults: the defaults of their columns.
    """

    def __init__(self, versions: Versions, defaults: PublishedDefaults) -> None:
        self._versions = versions
        self._defaults = defaults
        self._known = TableCache()
        self.read()

    def read(self) -> None:
        """Read everything from the store again.

        Raises:
            RecordsDamaged: it is not what was written, although its sums are right.
        """
        try:
            self._known = self._stored()
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise RecordsDamaged(
                "the definitions in the record store cannot be read", hint=REBUILD, why=type(error).__name__
            ) from error

    def _stored(self) -> TableCache:
        known = TableCache()
        for _, version in self._versions.rows(TABLE):
            entry = TableEntry.from_json(content_of(version))
            known.entries[entry.table.name] = entry
        for key, version in self._versions.rows(DEFINITION):
            number, step = int.from_bytes(key[1:], "big"), DefinitionStep.from_json(content_of(version))
            if step.before >= number:
                raise ValueError("a definition before itself")
            known.steps[number] = step
        numbers = self._versions.newest(NUMBERS)
        if numbers is not None:
            table, definition = json.loads(content_of(numbers))
            known.numbers = int(table), int(definition)
        known.schema = TargetSchema(entry.table for entry in known.entries.values())
        return known

    def __iter__(self) -> Iterator[TableEntry]:
        return iter(self._known.entries.values())

    def find(self, name: TableName) -> TableEntry | None:
        """The table of this name."""
        return self._known.entries.get(name)

    def entry(self, name: TableName) -> TableEntry:
        """The table of this name, which is known."""
        return self._known.entries[name]

    def cached(self, layout: TableLayout) -> RowCompleter | None:
        """The completer of rows of a layout that has come before, while the table's definition is the same."""
        found = self._known.completers.get(layout.name)
        return found if found is not None and found.layout is layout else None

    def entry_of(self, layout: TableLayout, seqno: Seqno) -> TableEntry:
        """The table of rows; one that is not known, or has other columns than the log said, begins without rows."""
        entry = self._known.entries.get(layout.name)
        if entry is None:
            why = "the log begins without its rows"
        else:
            try:
                self._known.schema.check(layout)
            except TargetDiffers as error:
                why = f"its rows have other columns than its definition: {error.message}"
                LOG.warning("the record store drops a table", extra={"table": layout.name, "why": why})
            else:
                if entry.keyed == layout.key:
                    return entry
                if entry.keyed is None:
                    return self._put(replace(entry, keyed=layout.key), seqno)
                why = "its rows are known by another key"
                LOG.warning("the record store drops a table", extra={"table": layout.name, "why": why})
                return self._put(replace(self._begin_again(entry, entry.table, seqno, why), keyed=layout.key), seqno)
        table = make_table(layout.name, layout.columns, [layout.columns[at].name for at in layout.key])
        begun = self._begin(table, seqno, why) if entry is None else self._begin_again(entry, table, seqno, why)
        return self._put(replace(begun, keyed=layout.key), seqno)

    def completer_of(self, layout: TableLayout, entry: TableEntry) -> RowCompleter:
        """The completer of rows of a layout."""
        found = self._known.completers.get(layout.name)
        if found is None or found.layout is not layout or found.definition != entry.definition:
            known = self._defaults.of(entry.table)
            defaults = [known.get(one.name) for one in layout.columns]
            found = self._known.completers[layout.name] = RowCompleter(layout, entry.prefix, entry.definition, defaults)
        return found

    def current(self, version: bytes, definition: int) -> bytes | None:
        """A version as of a later definition of its table; None: only the source knows some of its values.

        Raises:
            ValueError: its table has not had its definition.
        """
        steps: list[DefinitionStep] = []
        at = definition
        while at != definition_of(version):
            step = self._known.steps.get(at)
            if step is None or not step.before:
                raise ValueError("a version of a definition that its table has not had")
            steps.append(step)
            at = step.before
        content: bytes | None = content_of(version)
        for step in reversed(steps):
            content = None if content is None else converted(content, step)
        return None if content is None else make_version(seqno_of(version), definition, content)

    def apply_statement(self, statement: Statement, seqno: Seqno, commit_time: int) -> None:
        """Follow a definition of the log. What is not understood makes its tables unknown, not the log wrong."""
        if statement.sql.startswith(SAVEPOINTS):
            return
        try:
            found = plan(statement, self._known.schema, commit_time)
        except ConnectorError as error:
            self.forget_affected(statement, error.located, seqno)
            return
        for operation in found.operations:
            self._operate(operation, seqno)

    def forget_all(self, seqno: Seqno) -> None:
        """Forget all tables: an initial load begins."""
        for name in list(self._known.entries):
            self._forget(name, seqno)

    def apply_load_event(
        self, event: LoadEvent, statements: Sequence[Statement], seqno: Seqno, commit_time: int
    ) -> None:
        """Follow an event of a table's load that is more than rows."""
        entry = self._known.entries.get(event.table)
        if event.part is Part.BEGIN:
            self._begin_load(event, statements, seqno, commit_time)
        elif event.part is Part.END and entry is not None and entry.load == event.load:
            self._sweep(entry, seqno)
            self._put(replace(entry, reason=entry.lost, since=NO_SEQNO, load="", lost=""), seqno)

    def _begin_load(self, event: LoadEvent, statements: Sequence[Statement], seqno: Seqno, commit_time: int) -> None:
        name = event.table
        schema = self._known.schema.without(name)
        try:
            for statement in statements:
                schema = plan(statement, schema, commit_time).target_schema
        except ConnectorError as error:
            LOG.warning(
                "the record store does not understand a table's definition: its defaults are not known",
                extra={"table": name, "why": error.located},
            )
        made, entry = schema.find(name), self._known.entries.get(name)
        if entry is None or (made is not None and (made.columns, made.key) != (entry.table.columns, entry.table.key)):
            if made is None:
                return  # its first rows tell the columns
            entry = self._begin(made, seqno, "it is being loaded")
        elif made is not None:
            entry = replace(entry, table=made)
        self._put(replace(entry, since=seqno, load=event.load, everywhere=not event.targets, lost=""), seqno)

    def _sweep(self, entry: TableEntry, seqno: Seqno) -> None:
        """Delete the rows that were not written since the load began: the source does not have them."""
        written = set(self._versions.open)
        gone = [
            key
            for key, version in self._versions.rows(entry.prefix)
            if seqno_of(version) < entry.since and key not in written
        ]
        for start in range(0, len(gone), SWEEP_KEYS):
            keys = gone[start : start + SWEEP_KEYS]
            self._versions.fetch(keys)
            for key in keys:
                self._versions.put(key, None)
            self._versions.grew(sum(map(len, keys)), seqno)

    def forget_affected(self, statement: Statement, why: str, seqno: Seqno) -> None:
        """Forget the tables that a statement may be about."""
        try:
            about = affected_tables(statement)
        except Unsupported:
            names = list(self._known.entries)
        else:
            touched = {*about.tables, *([about.partner] if about.partner else [])}
            names = [name for name in self._known.entries if name in touched or about.schema == name.schema]
        for name in names:
            self.forget(name, why, seqno)

    def lose(self, name: TableName, seqno: Seqno) -> None:
        """Note that a row which is not known is now under a key that a load may have passed already."""
        entry = self._known.entries[name]
        if entry.loading and not entry.lost:
            self._put(replace(entry, lost=LOST), seqno)
        elif not entry.loading and not entry.reason:
            self._put(replace(entry, reason=LOST), seqno)

    def find_again(self, name: TableName, seqno: Seqno) -> bool:
        """True if a load that has read all of a table has to read it once more, for rows that it may not have brought.

        Args:
            name: the table.
            seqno: the next event.
        """
        entry = self._known.entries.get(name)
        if entry is None or not (entry.loading and entry.everywhere and entry.lost):
            return False
        self._put(replace(entry, lost=""), seqno)
        return True

    def forget(self, name: TableName, why: str, seqno: Seqno) -> None:
        """Forget a table and its rows, until it is loaded."""
        LOG.warning("the record store drops a table: thl load brings its rows", extra={"table": name, "why": why})
        entry = self._known.entries[name]
        if entry.loading:  # what the load has to read once more would be forgotten, too
            bare = make_table(name, entry.table.columns, entry.table.key)  # its defaults may have changed
            self._begin_again(entry, bare, seqno, why)
        else:
            self._forget(name, seqno)

    def drop_rows(
        self, name: TableName, why: str, seqno: Seqno, table: Table | None = None, *, defined: bool = True
    ) -> None:
        """Forget the rows of a table, until it is loaded.

        Args:
            name: the table.
            why: the reason.
            seqno: the event.
            table: another definition of it; None: it has none.
            defined: false: its defaults may have changed unseen.
        """
        LOG.warning(
            "the record store drops the rows of a table: thl load brings them back", extra={"table": name, "why": why}
        )
        entry = self._known.entries[name]
        table = table or entry.table
        self._begin_again(entry, table if defined else make_table(name, table.columns, table.key), seqno, why)

    def _operate(self, operation: Operation, seqno: Seqno) -> None:
        match operation:
            case CreateTable(table, assumed):
                known = make_table(table.name, table.columns, table.key) if assumed else table
                self._begin(known, seqno, ASSUMED if assumed else "")
            case DropTable(table):
                self._forget(table.name, seqno)
            case RenameTable(table, name):
                entry = self._known.entries[table.name]
                self._remove(table.name)
                self._put(replace(entry, table=entry.table.renamed(name)), seqno)
            case Truncate(table):
                self._begin(table, seqno, "")
            case AlterTable():
                self._alter(operation, seqno)
            case _:
                pass

    def _alter(self, operation: AlterTable, seqno: Seqno) -> None:
        before, after = operation.before, operation.after
        entry = self._known.entries[before.name]
        keyed = _same_keys(operation, entry.keyed)
        if entry.keyed is not None and keyed is None:
            self.drop_rows(before.name, "the columns of its key have changed", seqno, after)
            return
        definition = entry.definition
        origins = self._defaults.published(after, operation.origins)
        step = step_of(entry.definition, [column.name for column in before.columns], origins)
        # Equal columns can have other values: one is dropped and added again, or is computed in another way.
        if before.columns != after.columns or not step.keeps_values:
            definition = self._number(1, seqno)
            self._known.steps[definition] = step
            self._versions.put(_definition_key(definition), make_version(seqno, NO_DEFINITION, step.to_json()))
        self._put(replace(entry, definition=definition, table=after, keyed=keyed), seqno)

    def _begin(self, table: Table, seqno: Seqno, why: str) -> TableEntry:
        """Begin a table without rows."""
        if (before := self._known.entries.get(table.name)) is not None:
            self._versions.end(before.prefix, seqno)
        number, definition = self._number(0, seqno), self._number(1, seqno)
        step = DefinitionStep(0, (), 0)
        self._known.steps[definition] = step
        self._versions.put(_definition_key(definition), make_version(seqno, NO_DEFINITION, step.to_json()))
        return self._put(TableEntry(number, definition, table, why), seqno)

    def _begin_again(self, entry: TableEntry, table: Table, seqno: Seqno, why: str) -> TableEntry:
        """Begin a table again without rows. A load that goes on must read it once more: what it has brought is gone."""
        begun = self._begin(table, seqno, why)
        if not entry.loading:
            return begun
        load = replace(begun, since=entry.since, load=entry.load, everywhere=entry.everywhere, lost=entry.lost or why)
        return self._put(load, seqno)

    def _put(self, entry: TableEntry, seqno: Seqno) -> TableEntry:
        name = entry.table.name
        self._known.entries[name] = entry
        self._known.schema = self._known.schema.with_table(entry.table)
        self._known.completers.pop(name, None)
        self._versions.fetch((_table_key(name),))
        self._versions.put(_table_key(name), make_version(seqno, NO_DEFINITION, entry.to_json()))
        return entry

    def _forget(self, name: TableName, seqno: Seqno) -> None:
        if (entry := self._known.entries.get(name)) is not None:
            self._versions.end(entry.prefix, seqno)
            self._remove(name)

    def _remove(self, name: TableName) -> None:
        del self._known.entries[name]
        self._known.schema = self._known.schema.without(name)
        self._known.completers.pop(name, None)
        self._versions.fetch((_table_key(name),))
        self._versions.put(_table_key(name), None)

    def _number(self, which: int, seqno: Seqno) -> int:
        numbers = list(self._known.numbers)
        numbers[which] += 1
        self._known.numbers = numbers[0], numbers[1]
        self._versions.fetch((NUMBERS,))
        self._versions.put(NUMBERS, make_version(seqno, NO_DEFINITION, json.dumps(numbers).encode()))
        return numbers[which]


def _same_keys(operation: AlterTable, keyed: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The columns that the rows' keys have after an ALTER TABLE; None if their bytes change, or no row has come."""
    if keyed is None:
        return None
    step = step_of(0, [column.name for column in operation.before.columns], operation.origins)
    after = {column: at for at, column in enumerate(step.columns)}
    found = [after.get((at, "")) for at in keyed]
    return None if None in found else tuple(at for at in found if at is not None)


def _table_key(name: TableName) -> bytes:
    return TABLE + "\x00".join(name).encode()


def _definition_key(number: int) -> bytes:
    return DEFINITION + number.to_bytes(4, "big")
