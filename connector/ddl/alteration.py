"""ALTER TABLE: all its clauses together are one change from the columns before to the columns after.

What a change means for existing rows is decided by the caller: `Meaning`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar, assert_never

from connector.ddl.column_spec import ColumnSpec, column_spec
from connector.ddl.mariadb import ServerDialect
from connector.ddl.syntax.ast import AlterTableStatement
from connector.ddl.syntax.ast_column import After, DefinedColumn, First, NotUnderstood, stop
from connector.ddl.syntax.ast_table import (
    Check,
    Constraint,
    ForeignKey,
    Index,
    OtherOption,
    Partitioning,
    PrimaryKey,
    TableCharset,
)
from connector.ddl.syntax.clauses import (
    AddColumn,
    AddColumns,
    AddConstraint,
    AlterColumn,
    ChangeColumn,
    Clause,
    ConvertCharset,
    DropColumn,
    DropConstraint,
    ExchangeRows,
    ModifyColumn,
    NoEffect,
    OrderBy,
    PartitionClause,
    PartitionEffect,
    RenameColumn,
    RenameTo,
    UnknownClause,
)
from connector.ddl.syntax.type_names import CHARACTERS
from connector.log.transaction.layout import Column, TableName

Origin = TypeVar("Origin")


@dataclass(slots=True)
class Altered(Generic[Origin]):
    """A column while clauses are applied.

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
    """The meaning of clauses for rows. Each method raises `Unsupported` where it is not known."""

    def added(self, spec: ColumnSpec) -> Origin:
        """A column is new."""

    def changed(self, item: Altered[Origin], spec: ColumnSpec) -> Origin:
        """A column gets another definition."""

    def converted(self, texts: list[Altered[Origin]], charset: str) -> None:
        """Text columns get another character set, and whatever else follows from it."""

    def partition_dropped(self) -> None:
        """Rows are deleted that the log does not name."""


@dataclass(slots=True)
class Alteration(Generic[Origin]):
    """The table while clauses are applied.

    Args:
        name: its name before.
        columns: those there are now.
        charset: what text columns get that name none.
        dialect: the statement's.
        meaning: of clauses for rows.
        key: the names of the key's columns; None: those that were the key are it.
        rename: its name after, if it gets another.
        moved: new columns, and those that get another place, with the place.
    """

    name: TableName
    columns: list[Altered[Origin]]
    charset: str
    dialect: ServerDialect
    meaning: Meaning[Origin]
    key: tuple[str, ...] | None = None
    rename: TableName | None = None
    moved: list[tuple[Altered[Origin], First | After | None]] = field(default_factory=list)
    _before: frozenset[str] = field(init=False)
    _named: set[str] = field(default_factory=set)
    _optional: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._before = frozenset(item.old.casefold() for item in self.columns)

    def had(self, name: str) -> bool:
        """True if a column had this name before the statement: that is what IF EXISTS tests."""
        return name.casefold() in self._before

    def mention(self, optional: bool, *names: str) -> None:
        """A clause is about columns; one with IF [NOT] EXISTS about those of no other."""
        folded = {name.casefold() for name in names}
        if folded & (self._named if optional else self._optional):
            stop("a condition about a column that another clause names, too")
        self._named |= folded
        self._optional |= folded if optional else set()

    def index(self, name: str) -> int:
        """The index of the column that has this name now."""
        return self._index(name, lambda item: item.column.name)

    def old_index(self, name: str) -> int:
        """The index of the column that had this name before the statement: clauses mean the names of before."""
        return self._index(name, lambda item: item.old)

    def _index(self, name: str, called: Callable[[Altered[Origin]], str]) -> int:
        wanted = name.casefold()
        for at, item in enumerate(self.columns):
            if called(item).casefold() == wanted:
                return at
        return stop(f"column {name} is not in {self.name}")

    def key_after(self, before: Iterable[str]) -> tuple[str, ...]:
        """The names of the key's columns after all clauses; that they are NOT NULL is seen to."""
        if self.key is None:
            places = [self.old_index(part) for part in before]
        else:
            places = [self.index(part) for part in self.key]
        for at in places:
            self.columns[at].column = replace(self.columns[at].column, nullable=False)
        return tuple(self.columns[at].column.name for at in places)


def alter(command: AlterTableStatement, state: Alteration[Origin], begin: Callable[[], object]) -> None:
    """Apply all clauses.

    Args:
        command: the statement.
        state: the table; changed.
        begin: called before anything is changed, if a clause touches rows or what we keep of the table.

    Raises:
        Unsupported: a clause is not understood.
    """
    for clause in command.clauses:
        if _touches(clause):
            begin()
        state.charset = _charset(clause) or state.charset  # new columns have it, whatever their clause's place
    for clause in command.clauses:
        _apply(clause, state)
    _put(state)


def _touches(clause: Clause) -> bool:
    """True if a clause touches rows or columns, or may."""
    match clause:
        case NoEffect() | AlterColumn() | OrderBy() | Partitioning():
            return False
        case PartitionClause(_, effect):
            return effect is not PartitionEffect.NONE
        case AddConstraint(_, constraint):
            return isinstance(constraint, PrimaryKey)
        case DropConstraint(_, primary):
            return primary
        case AddColumn() | AddColumns() | ModifyColumn() | ChangeColumn() | RenameColumn() | DropColumn() | RenameTo():
            return True
        case ConvertCharset() | TableCharset() | OtherOption() | ExchangeRows() | UnknownClause() | NotUnderstood():
            return True
        case _:
            assert_never(clause)


def _charset(clause: Clause) -> str:
    """The character set that a clause gives the table; "" for none."""
    return clause.charset if isinstance(clause, ConvertCharset | TableCharset) else ""


def _apply(clause: Clause, state: Alteration[Origin]) -> None:
    match clause:
        case AddColumn(_, optional, column):
            _add_column(column, state, optional=optional)
        case AddColumns(_, optional, items):
            for item in items:
                match item:
                    case DefinedColumn():
                        _add_column(item, state, optional=optional)
                    case NotUnderstood():
                        item.stop()
                    case _:
                        _add_constraint(item, state)
        case AddConstraint(_, constraint):
            _add_constraint(constraint, state)
        case ModifyColumn(_, optional, column):
            _change(column.name.text, column, state, optional=optional)
        case ChangeColumn(_, optional, old, column):
            _change(old.text, column, state, optional=optional)
        case RenameColumn(_, optional, old, new):
            state.mention(optional, old.text, new.text)
            if state.had(old.text) or not optional:
                named = state.columns[state.old_index(old.text)]
                named.column = replace(named.column, name=new.text)
        case AlterColumn(_, _, column, defaulted, _):
            for one in state.columns:
                one.defaulted = one.defaulted or (defaulted and one.old.casefold() == column.text.casefold())
        case DropColumn(_, optional, column):
            state.mention(optional, column.text)
            if state.had(column.text) or not optional:
                del state.columns[state.old_index(column.text)]
        case DropConstraint(_, primary):
            state.key = () if primary else state.key
        case RenameTo(_, table):
            state.rename = table.name
        case ConvertCharset(_, charset):
            _convert(charset, state)
        case PartitionClause(_, PartitionEffect.ROWS_GONE):
            state.meaning.partition_dropped()
        case PartitionClause(_, PartitionEffect.UNKNOWN) | ExchangeRows():
            stop("an ALTER TABLE clause that is not known")
        case NotUnderstood() | UnknownClause():
            clause.stop()
        case TableCharset(_, charset):
            state.charset = charset or state.charset
        case OtherOption(_, doubt):
            if doubt:
                stop(doubt)
        case NoEffect() | OrderBy() | Partitioning() | PartitionClause():
            pass
        case _:
            assert_never(clause)


def _add_constraint(constraint: Constraint, state: Alteration[Origin]) -> None:
    match constraint:
        case PrimaryKey(_, columns):
            state.key = tuple(part.column.text for part in columns)
        case Index() | ForeignKey() | Check():
            pass
        case _:
            assert_never(constraint)


def _add_column(defined: DefinedColumn, state: Alteration[Origin], *, optional: bool) -> None:
    name = defined.name.text
    spec = column_spec(defined, state.charset, state.dialect)
    state.mention(optional, name)
    if optional and state.had(name):
        return
    if spec.primary:
        state.key = (name,)
    item = Altered(spec.column, "", state.meaning.added(spec), spec.generated, spec)
    state.moved.append((item, defined.position))


def _change(name: str, defined: DefinedColumn, state: Alteration[Origin], *, optional: bool) -> None:
    new = defined.name.text
    spec = column_spec(defined, state.charset, state.dialect)
    state.mention(optional, name, new)
    if optional and not state.had(name):
        return
    at = state.old_index(name)
    item = state.columns[at]
    item.origin = state.meaning.changed(item, spec)
    if spec.primary:
        state.key = (new,)
    item.column, item.generated, item.spec = spec.column, spec.generated, spec
    if defined.position is not None:
        state.moved.append((state.columns.pop(at), defined.position))


def _convert(charset: str, state: Alteration[Origin]) -> None:
    texts = [item for item in state.columns if _base(item.column) in (*CHARACTERS, "enum", "set")]
    state.meaning.converted(texts, charset)
    for item in texts:
        item.column = replace(item.column, charset=charset)
    state.charset = charset


def _put(state: Alteration[Origin]) -> None:
    """Put what is new or moved where it is to be: in the order of the clauses, once all have been applied."""
    for item, position in state.moved:
        match position:
            case None:
                state.columns.append(item)
            case First():
                state.columns.insert(0, item)
            case After(_, column):
                state.columns.insert(state.index(column.text) + 1, item)
            case _:
                assert_never(position)
    names = [item.column.name.casefold() for item in state.columns]
    if twice := next((name for name in names if names.count(name) > 1), None):
        stop(f"column {twice} is there")


def _base(column: Column) -> str:
    return column.type.partition("(")[0]
