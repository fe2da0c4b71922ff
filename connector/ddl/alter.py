"""ALTER TABLE: all its clauses together are one change from the columns before to the columns after.

What a change means for the rows that are there is not decided here but by whoever asks: `Meaning`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

from connector.ddl.column_spec import ColumnSpec, charset_name, charset_of, column_spec
from connector.ddl.create import index_or_constraint
from connector.ddl.reader import Reader
from connector.ddl.table_options import partitioning, table_option
from connector.ddl.type_names import CHARACTERS
from connector.log.transaction.layout import Column, TableName

Origin = TypeVar("Origin")

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
class Altered(Generic[Origin]):
    """A column while clauses are read.

    Args:
        column: what it is now.
        old: its name before the statement; "" for a new one.
        origin: what `Meaning` says of its values.
        generated: whether the source computes it.
        spec: the definition that a clause gives it; None: that of before.
        defaulted: whether a clause gives it another default alone, or takes it away.
    """

    column: Column
    old: str
    origin: Origin
    generated: bool = False
    spec: ColumnSpec | None = None
    defaulted: bool = False


class Meaning(Protocol[Origin]):
    """What clauses mean for rows. Each method may stop the reader."""

    def added(self, spec: ColumnSpec) -> Origin:
        """A column is new."""

    def changed(self, reader: Reader, item: Altered[Origin], spec: ColumnSpec) -> Origin:
        """A column gets another definition."""

    def converted(self, reader: Reader, texts: list[Altered[Origin]], charset: str) -> None:
        """Text columns get another character set, and whatever else follows from it."""

    def partition_dropped(self, reader: Reader) -> None:
        """Rows are deleted that the log does not name."""


@dataclass(slots=True)
class Alteration(Generic[Origin]):
    """The table while clauses are read.

    Args:
        name: its name before.
        columns: those there are now.
        key: the names of the key's columns; None: those that were the key are it.
        charset: what text columns get that name none.
        sql_mode: the session's.
        meaning: of clauses for rows.
        rename: its name after, if it gets another.
        moved: new columns, and those that get another place, with the place.
    """

    name: TableName
    columns: list[Altered[Origin]]
    key: tuple[str, ...] | None
    charset: str
    sql_mode: str
    meaning: Meaning[Origin]
    rename: TableName | None = None
    moved: list[tuple[Altered[Origin], tuple[str, ...]]] = field(default_factory=list)
    _before: frozenset[str] = field(init=False)
    _named: set[str] = field(default_factory=set)
    _optional: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._before = frozenset(item.old.casefold() for item in self.columns)

    def had(self, name: str) -> bool:
        """Whether a column was called so before the statement: that is what IF EXISTS asks."""
        return name.casefold() in self._before

    def mention(self, reader: Reader, optional: bool, *names: str) -> None:
        """A clause is about columns; one with IF [NOT] EXISTS about those of no other."""
        folded = {name.casefold() for name in names}
        if folded & (self._named if optional else self._optional):
            reader.stop("a condition about a column that another clause names, too,")
        self._named |= folded
        self._optional |= folded if optional else set()

    def index(self, reader: Reader, name: str) -> int:
        """Where the column stands that is called so now."""
        return self._index(reader, name, lambda item: item.column.name)

    def old_index(self, reader: Reader, name: str) -> int:
        """Where the column stands that was called so before the statement: that is what its clauses mean."""
        return self._index(reader, name, lambda item: item.old)

    def _index(self, reader: Reader, name: str, called: Callable[[Altered[Origin]], str]) -> int:
        wanted = name.casefold()
        for at, item in enumerate(self.columns):
            if called(item).casefold() == wanted:
                return at
        return reader.stop(f"column {name} is not in {self.name}")

    def key_after(self, reader: Reader, before: Iterable[str]) -> tuple[str, ...]:
        """The names of the key's columns after all clauses; that they are NOT NULL is seen to."""
        if self.key is None:
            places = [self.old_index(reader, part) for part in before]
        else:
            places = [self.index(reader, part) for part in self.key]
        for at in places:
            self.columns[at].column = replace(self.columns[at].column, nullable=False)
        return tuple(self.columns[at].column.name for at in places)


def read_clauses(reader: Reader, state: Alteration[Origin], begin: Callable[[], object]) -> None:
    """Read everything behind the table's name.

    Args:
        reader: behind it.
        state: the table; changed.
        begin: called before the first clause that touches rows or what we keep of the table.

    Raises:
        Unsupported: a clause that is not understood.
    """
    state.charset = _charset_after(reader, state, begin)
    _read(reader, state, begin)
    _put(reader, state)


def _charset_after(reader: Reader, state: Alteration[Origin], begin: Callable[[], object]) -> str:
    """The table's character set after all clauses: new columns have it, whatever their clause's place."""
    mark = reader.mark
    trial = Alteration[None](
        name=state.name,
        columns=[Altered(item.column, item.old, None) for item in state.columns],
        key=state.key,
        charset=state.charset,
        sql_mode=state.sql_mode,
        meaning=_Nothing(),
    )
    _read(reader, trial, begin)
    reader.back(mark)
    return trial.charset


class _Nothing:
    """Of no clause is asked what it means."""

    def added(self, spec: ColumnSpec) -> None:
        pass

    def changed(self, reader: Reader, item: Altered[None], spec: ColumnSpec) -> None:
        pass

    def converted(self, reader: Reader, texts: list[Altered[None]], charset: str) -> None:
        pass

    def partition_dropped(self, reader: Reader) -> None:
        pass


def _read(reader: Reader, state: Alteration[Origin], begin: Callable[[], object]) -> None:
    while not reader.at_end:
        if not _without_effect(reader, state):
            begin()
            _clause(reader, state)
        # Table options may follow each other without a comma.
        if not reader.at_end and not reader.accept(",") and not (reader.peek("PARTITION") or reader.peek("REMOVE")):
            mark = reader.mark
            if table_option(reader) is None:
                reader.stop("an ALTER TABLE clause that is not known")
            reader.back(mark)


def _without_effect(reader: Reader, state: Alteration[Origin]) -> bool:
    """Pass a clause that touches neither rows nor columns, if one comes next."""
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
            reader.accept("IF", "EXISTS")
            reader.name()
            reader.expect("TO")
            reader.name()
            return True
    elif reader.accept("ALTER"):
        _alter_column(reader, state)
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


def _alter_column(reader: Reader, state: Alteration[Origin]) -> None:
    """ALTER [COLUMN] name SET DEFAULT …, DROP DEFAULT; or ALTER INDEX, CHECK, …"""
    start = reader.mark
    reader.accept("COLUMN")
    name = reader.name().casefold()
    if reader.peek("SET", "DEFAULT") or reader.peek("DROP", "DEFAULT"):
        for item in state.columns:
            item.defaulted = item.defaulted or item.old.casefold() == name
    reader.back(start)
    reader.skip_clause()


def _clause(reader: Reader, state: Alteration[Origin]) -> None:
    if reader.accept("ADD"):
        _add(reader, state)
    elif reader.accept("DROP"):
        _drop(reader, state)
    elif reader.accept("MODIFY"):
        reader.accept("COLUMN")
        optional = reader.accept("IF", "EXISTS")
        name = reader.name()
        _change(reader, state, name, name, optional=optional)
    elif reader.accept("CHANGE"):
        reader.accept("COLUMN")
        optional = reader.accept("IF", "EXISTS")
        name = reader.name()
        _change(reader, state, name, reader.name(), optional=optional)
    elif reader.accept("RENAME", "COLUMN"):
        optional = reader.accept("IF", "EXISTS")
        name = reader.name()
        reader.expect("TO")
        new = reader.name()
        state.mention(reader, optional, name, new)
        if state.had(name) or not optional:
            _rename(reader, state, name, new)
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


def _add(reader: Reader, state: Alteration[Origin]) -> None:
    key = index_or_constraint(reader)
    if key is not None:
        state.key = key
        return
    reader.accept("COLUMN")
    optional = reader.accept("IF", "NOT", "EXISTS")
    if not reader.accept("("):
        _add_column(reader, state, optional=optional)
        return
    while True:
        key = index_or_constraint(reader)
        if key is None:
            _add_column(reader, state, optional=optional)
        elif key:
            state.key = key
        if not reader.accept(","):
            break
    reader.expect(")")


def _add_column(reader: Reader, state: Alteration[Origin], *, optional: bool) -> None:
    name = reader.name()
    spec = column_spec(reader, name, state.charset, state.sql_mode)
    place = _place(reader)
    state.mention(reader, optional, name)
    if optional and state.had(name):
        return
    if spec.primary:
        state.key = (name,)
    state.moved.append((Altered(spec.column, "", state.meaning.added(spec), spec.generated, spec), place))


def _drop(reader: Reader, state: Alteration[Origin]) -> None:
    if reader.accept("PRIMARY", "KEY"):
        state.key = ()
        return
    if reader.accept_any("INDEX", "KEY", "CONSTRAINT"):
        reader.name()  # `PRIMARY`: any other was passed as being without effect
        state.key = ()
        return
    if reader.peek("PARTITION"):
        state.meaning.partition_dropped(reader)
        while not reader.at_end:
            reader.take()
        return
    reader.accept("COLUMN")
    optional = reader.accept("IF", "EXISTS")
    name = reader.name()
    state.mention(reader, optional, name)
    if state.had(name) or not optional:
        del state.columns[state.old_index(reader, name)]
    reader.accept_any("RESTRICT", "CASCADE")


def _rename(reader: Reader, state: Alteration[Origin], name: str, new: str) -> None:
    item = state.columns[state.old_index(reader, name)]
    item.column = replace(item.column, name=new)


def _change(reader: Reader, state: Alteration[Origin], name: str, new: str, *, optional: bool) -> None:
    spec = column_spec(reader, new, state.charset, state.sql_mode)
    place = _place(reader)
    state.mention(reader, optional, name, new)
    if optional and not state.had(name):
        return
    at = state.old_index(reader, name)
    item = state.columns[at]
    item.origin = state.meaning.changed(reader, item, spec)
    if spec.primary:
        state.key = (new,)
    item.column, item.generated, item.spec = spec.column, spec.generated, spec
    if place:
        state.moved.append((state.columns.pop(at), place))


def _convert(reader: Reader, state: Alteration[Origin]) -> None:
    if not (reader.accept("CHARACTER", "SET") or reader.accept("CHARSET")):
        reader.stop("a conversion that is not known")
    charset = charset_name(reader.take().text)
    if reader.accept("COLLATE"):
        charset = charset_of(reader.take().text) or charset
    texts = [item for item in state.columns if _base(item.column) in (*CHARACTERS, "enum", "set")]
    state.meaning.converted(reader, texts, charset)
    for item in texts:
        item.column = replace(item.column, charset=charset)
    state.charset = charset


def _place(reader: Reader) -> tuple[str, ...]:
    """Pass FIRST or AFTER and a name, if one of them comes next: ("FIRST",), ("AFTER", name)."""
    if reader.accept("FIRST"):
        return ("FIRST",)
    return ("AFTER", reader.name()) if reader.accept("AFTER") else ()


def _put(reader: Reader, state: Alteration[Origin]) -> None:
    """Put what is new or moved where it is to be: in the order of the clauses, once all have been read."""
    for item, place in state.moved:
        if not place:
            state.columns.append(item)
        elif place == ("FIRST",):
            state.columns.insert(0, item)
        else:
            state.columns.insert(state.index(reader, place[1]) + 1, item)
    names = [item.column.name.casefold() for item in state.columns]
    if twice := next((name for name in names if names.count(name) > 1), None):
        reader.stop(f"column {twice} is there")


def _base(column: Column) -> str:
    return column.type.partition("(")[0]
