"""ALTER TABLE: all its clauses together are one change from the columns before to the columns after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from connector.thl.layout import Column, TableName
from connector.write.catalog import Catalog
from connector.write.column_spec import ColumnSpec, charset_name, charset_of, column_spec
from connector.write.ddl_create import index_or_constraint
from connector.write.fill import Moment, fill
from connector.write.operations import AlterTable, Filled, Kept, Operation, RenameTable, Unknowable
from connector.write.sql_reader import Reader
from connector.write.table import Table, make_table
from connector.write.table_options import partitioning, table_option
from connector.write.types import CHARACTERS, parse, widening

_INDEX = ("INDEX", "KEY", "FOREIGN", "CHECK", "CONSTRAINT")
_PARTITION_CLAUSES = (
    ("ADD", "PARTITION"),
    ("REORGANIZE", "PARTITION"),
    ("COALESCE", "PARTITION"),
    ("REBUILD", "PARTITION"),
    ("OPTIMIZE", "PARTITION"),
    ("ANALYZE", "PARTITION"),
    ("CHECK", "PARTITION"),
    ("REPAIR", "PARTITION"),
    ("REMOVE", "PARTITIONING"),
)


@dataclass(slots=True)
class _Column:
    column: Column
    origin: Kept | Filled | Unknowable
    generated: bool


@dataclass(slots=True)
class _State:
    """The table while clauses are read."""

    before: Table
    columns: list[_Column]
    key: tuple[str, ...] | None  # by the names of after; None: the columns that were the key are it
    charset: str
    sql_mode: str
    moment: Moment
    rename: TableName | None = None

    def index(self, reader: Reader, name: str) -> int:
        """Where the column stands that is called so now."""
        return self._index(reader, name, lambda item: item.column.name)

    def old_index(self, reader: Reader, name: str) -> int:
        """Where the column stands that was called so before the statement: that is what its clauses mean."""
        return self._index(reader, name, lambda item: item.origin.name if isinstance(item.origin, Kept) else "")

    def _index(self, reader: Reader, name: str, called: Callable[[_Column], str]) -> int:
        wanted = name.casefold()
        for at, item in enumerate(self.columns):
            if called(item).casefold() == wanted:
                return at
        return reader.stop(f"column {name} is not in {self.before.name}")


def alter_table(reader: Reader, catalog: Catalog, *, sql_mode: str, moment: Moment) -> tuple[list[Operation], Catalog]:
    """Read what follows ALTER TABLE.

    Args:
        reader: after TABLE.
        catalog: the tables before.
        sql_mode: the session's.
        moment: when the statement ran.

    Returns:
        What is to be done (nothing, if no clause changes rows), and the tables after.

    Raises:
        Unsupported: a clause that is not understood, or that may change values.
        TargetDiffers: we have no such table.
    """
    reader.accept("IF", "EXISTS")
    name = reader.table()
    table = catalog.find(name) or make_table(name, (), ())
    state = _State(
        before=table,
        columns=[_Column(column, Kept(column.name), column.name in table.generated) for column in table.columns],
        key=None,
        charset=table.charset,
        sql_mode=sql_mode,
        moment=moment,
    )
    while not reader.at_end:
        if not _without_effect(reader):
            if name not in catalog:
                catalog.get(name)
            _clause(reader, state)
        # Table options may follow each other without a comma.
        if not reader.at_end and not reader.accept(",") and not (reader.peek("PARTITION") or reader.peek("REMOVE")):
            mark = reader.mark
            if table_option(reader) is None:
                reader.stop("an ALTER TABLE clause that is not known")
            reader.back(mark)
    if name not in catalog:
        return [], catalog
    return _operations(reader, state, catalog)


def drop_key(catalog: Catalog, name: TableName) -> tuple[list[Operation], Catalog]:
    """What DROP INDEX `PRIMARY` does."""
    before = catalog.get(name)
    after = make_table(name, before.columns, (), before.charset, before.generated)
    origins = tuple(Kept(column.name) for column in before.columns)
    return [AlterTable(before, after, origins)], catalog.with_table(after)


def _operations(reader: Reader, state: _State, catalog: Catalog) -> tuple[list[Operation], Catalog]:
    before = state.before
    if state.key is None:
        places = [state.old_index(reader, part) for part in before.key]
    else:
        places = [state.index(reader, part) for part in state.key]
    for at in places:
        state.columns[at].column = replace(state.columns[at].column, nullable=False)
    after = make_table(
        before.name,
        (item.column for item in state.columns),
        (state.columns[at].column.name for at in places),
        state.charset,
        (item.column.name for item in state.columns if item.generated),
    )
    operations: list[Operation] = []
    if after != before:
        operations.append(AlterTable(before, after, tuple(item.origin for item in state.columns)))
        catalog = catalog.with_table(after)
    if state.rename is not None and state.rename != before.name:
        operations.append(RenameTable(after, state.rename))
        catalog = catalog.without(before.name).with_table(after.renamed(state.rename))
    return operations, catalog


def _without_effect(reader: Reader) -> bool:
    """Pass a clause that touches neither rows nor what we keep of the table, if one comes next."""
    mark = reader.mark
    if reader.accept("ADD"):
        found = index_or_constraint(reader)
        if found == ():
            return True
    elif reader.accept("DROP"):
        if any(reader.accept(word) for word in _INDEX):
            reader.accept("KEY")
            reader.accept("IF", "EXISTS")
            if reader.name().upper() != "PRIMARY":
                return True
    elif reader.accept("RENAME"):
        if reader.accept_any("INDEX", "KEY"):
            reader.name()
            reader.expect("TO")
            reader.name()
            return True
    elif reader.accept("ALTER"):
        reader.skip_clause()
        return True
    elif reader.accept_any("ENABLE", "DISABLE"):
        reader.expect("KEYS")
        return True
    elif reader.accept_any("ALGORITHM", "LOCK"):
        reader.accept("=")
        reader.name()
        return True
    elif (
        reader.accept("FORCE")
        or reader.accept("WITH", "VALIDATION")
        or reader.accept("WITHOUT", "VALIDATION")
        or reader.accept_any("SECONDARY_LOAD", "SECONDARY_UNLOAD")
    ):
        return True
    elif reader.accept("ORDER", "BY"):
        # Its list has commas: nothing may follow it but more of them.
        while not reader.at_end:
            reader.take()
        return True
    reader.back(mark)
    for words in _PARTITION_CLAUSES:
        if reader.accept(*words):
            while not reader.at_end:
                reader.take()
            return True
    return partitioning(reader)


def _clause(reader: Reader, state: _State) -> None:
    if reader.accept("ADD"):
        _add(reader, state)
    elif reader.accept("DROP"):
        _drop(reader, state)
    elif reader.accept("MODIFY"):
        reader.accept("COLUMN")
        reader.accept("IF", "EXISTS")
        name = reader.name()
        _change(reader, state, name, name)
    elif reader.accept("CHANGE"):
        reader.accept("COLUMN")
        reader.accept("IF", "EXISTS")
        name = reader.name()
        _change(reader, state, name, reader.name())
    elif reader.accept("RENAME", "COLUMN"):
        name = reader.name()
        reader.expect("TO")
        _rename(reader, state, name, reader.name())
    elif reader.accept("RENAME"):
        if not reader.accept_any("TO", "AS"):
            reader.accept("=")
        state.rename = reader.table()
    elif reader.accept("CONVERT", "TO"):
        _convert(reader, state)
    elif (charset := table_option(reader)) is not None:
        state.charset = charset or state.charset
    else:
        reader.stop("an ALTER TABLE clause that is not known")


def _add(reader: Reader, state: _State) -> None:
    key = index_or_constraint(reader)
    if key is not None:
        state.key = key
        return
    reader.accept("COLUMN")
    reader.accept("IF", "NOT", "EXISTS")
    if not reader.accept("("):
        _add_column(reader, state)
        return
    while True:
        key = index_or_constraint(reader)
        if key is None:
            _add_column(reader, state)
        elif key:
            state.key = key
        if not reader.accept(","):
            break
    reader.expect(")")


def _add_column(reader: Reader, state: _State) -> None:
    name = reader.name()
    if any(item.column.name.casefold() == name.casefold() for item in state.columns):
        reader.stop(f"column {name} is there")
    spec = column_spec(reader, name, state.charset, state.sql_mode)
    state.columns.append(_Column(spec.column, fill(spec, state.moment), spec.generated))
    if spec.primary:
        state.key = (name,)
    _place(reader, state, len(state.columns) - 1)


def _drop(reader: Reader, state: _State) -> None:
    if reader.accept("PRIMARY", "KEY"):
        state.key = ()
        return
    if reader.accept_any("INDEX", "KEY", "CONSTRAINT"):
        reader.name()  # `PRIMARY`: any other was passed as being without effect
        state.key = ()
        return
    if reader.peek("PARTITION"):
        reader.stop("DROP PARTITION, which deletes rows that the log does not name,")
    reader.accept("COLUMN")
    reader.accept("IF", "EXISTS")
    del state.columns[state.old_index(reader, reader.name())]
    reader.accept_any("RESTRICT", "CASCADE")


def _rename(reader: Reader, state: _State, name: str, new: str) -> None:
    item = state.columns[state.old_index(reader, name)]
    item.column = replace(item.column, name=new)


def _change(reader: Reader, state: _State, name: str, new: str) -> None:
    at = state.old_index(reader, name)
    spec = column_spec(reader, new, state.charset, state.sql_mode)
    state.columns[at].origin = _widened(reader, state.columns[at], spec)
    if spec.primary:
        state.key = (new,)
    state.columns[at].column = spec.column
    _place(reader, state, at)


def _widened(reader: Reader, item: _Column, spec: ColumnSpec) -> Kept:
    """Where the values of a changed column come from: from itself, if each of them stays what it is."""
    old, new = item.column, spec.column
    if not isinstance(item.origin, Kept):
        reader.stop("a column is changed twice")
    if item.generated or spec.generated or spec.inexact:
        reader.stop(f"column {old.name} gets values that only the source knows")
    change = widening(old, new)
    if change is None:
        reader.stop(f"column {old.name} changes from {_shown(old)} to {_shown(new)}, which may change values,")
    return Kept(item.origin.name, item.origin.pad + change.pad, filled=old.nullable and not new.nullable)


def _convert(reader: Reader, state: _State) -> None:
    if not (reader.accept("CHARACTER", "SET") or reader.accept("CHARSET")):
        reader.stop("a conversion that is not known")
    charset = charset_name(reader.take().text)
    if reader.accept("COLLATE"):
        charset = charset_of(reader.take().text)
    texts = [item for item in state.columns if parse(item.column.type).base in (*CHARACTERS, "enum", "set")]
    if charset != "utf8mb4" and any(item.column.charset != charset for item in texts):
        reader.stop(f"a conversion to {charset}, which may lose characters,")
    for item in texts:
        item.column = replace(item.column, charset=charset)
    state.charset = charset


def _place(reader: Reader, state: _State, at: int) -> None:
    if reader.accept("FIRST"):
        state.columns.insert(0, state.columns.pop(at))
    elif reader.accept("AFTER"):
        after = reader.name()
        item = state.columns.pop(at)
        state.columns.insert(state.index(reader, after) + 1, item)


def _shown(column: Column) -> str:
    sign = " unsigned" if column.unsigned else ""
    labels = f"({','.join(column.labels)})" if column.labels else ""
    return f"{column.type}{labels}{sign}{f' {column.charset}' if column.charset else ''}"
