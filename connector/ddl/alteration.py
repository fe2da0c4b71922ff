"""Applies all clauses of an ALTER TABLE as one change from the old columns to the new ones.

The caller decides what a change means for existing rows: `Meaning`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar, assert_never

from connector.ddl.column_spec import ColumnSpec, add_own_indexes, column_spec
from connector.ddl.indexes import Indexes, TableIndex
from connector.ddl.mariadb import ServerDialect
from connector.ddl.syntax.ast import AlterTableStatement
from connector.ddl.syntax.ast_column import After, Default, DefinedColumn, First, NotUnderstood, stop
from connector.ddl.syntax.ast_table import (
    CheckConstraint,
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
    RenameIndex,
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
        column: the column after the clauses applied so far.
        old: the column's name before the statement; "" for a new column.
        origin: the source of its values, as `Meaning` returned it.
        generated: true for a generated column.
        spec: the definition in a clause; None: the column keeps its definition.
        defaulted: true if a clause only sets or drops its default.
        default: the default that such a clause sets; None: none, or an unknown one.
    """

    column: Column
    old: str
    origin: Origin
    generated: bool = False
    spec: ColumnSpec | None = None
    defaulted: bool = False
    default: Default | None = None


class Meaning(Protocol[Origin]):
    """The effect of clauses on rows. Each method raises `Unsupported` if the effect is not known."""

    def added(self, spec: ColumnSpec) -> Origin:
        """Return the source of a new column's values."""

    def changed(self, item: Altered[Origin], spec: ColumnSpec) -> Origin:
        """Return the source of a column's values after a change of its definition."""

    def converted(self, texts: list[Altered[Origin]], charset: str) -> None:
        """Convert text columns to a character set, with all consequences for their types."""

    def partition_dropped(self) -> None:
        """Handle a dropped partition, whose deleted rows are not in the log."""


@dataclass(slots=True)
class Alteration(Generic[Origin]):
    """The table while clauses are applied.

    Args:
        name: the table's name before the statement.
        columns: the columns after the clauses applied so far.
        charset: the default character set of new text columns.
        dialect: the dialect of the statement.
        meaning: the effect of clauses on rows.
        key: the new names of the key's columns; None: the key is unchanged.
        rename: the table's new name; None: unchanged.
        moved: new and moved columns, with their positions.
        indexes: the secondary indexes.
        comment: the table's new comment; None: unchanged.
    """

    name: TableName
    columns: list[Altered[Origin]]
    charset: str
    dialect: ServerDialect
    meaning: Meaning[Origin]
    key: tuple[str, ...] | None = None
    rename: TableName | None = None
    moved: list[tuple[Altered[Origin], First | After | None]] = field(default_factory=list)
    indexes: Indexes = field(default_factory=Indexes)
    comment: str | None = None
    _before: frozenset[str] = field(init=False)
    _named: set[str] = field(default_factory=set)
    _optional: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._before = frozenset(item.old.casefold() for item in self.columns)

    def had(self, name: str) -> bool:
        """True if a column had this name before the statement, as IF EXISTS tests it."""
        return name.casefold() in self._before

    def mention(self, optional: bool, *names: str) -> None:
        """Note the columns that a clause names; stop if another clause names a column of an IF [NOT] EXISTS."""
        folded = {name.casefold() for name in names}
        if folded & (self._named if optional else self._optional):
            stop("IF [NOT] EXISTS for a column that another clause also names")
        self._named |= folded
        self._optional |= folded if optional else set()

    def index(self, name: str) -> int:
        """Return the index of the column that has this name now."""
        return self._index(name, lambda item: item.column.name)

    def old_index(self, name: str) -> int:
        """Return the index of the column that had this name before the statement, as clauses use it."""
        return self._index(name, lambda item: item.old)

    def _index(self, name: str, called: Callable[[Altered[Origin]], str]) -> int:
        folded_name = name.casefold()
        for at, item in enumerate(self.columns):
            if called(item).casefold() == folded_name:
                return at
        return stop(f"column {name} is not in {self.name}")

    def key_after(self, before: Iterable[str]) -> tuple[str, ...]:
        """Return the names of the key's columns after all clauses, and make these columns NOT NULL."""
        if self.key is None:
            positions = [self.old_index(part) for part in before]
        else:
            positions = [self.index(part) for part in self.key]
        for at in positions:
            self.columns[at].column = replace(self.columns[at].column, nullable=False)
        return tuple(self.columns[at].column.name for at in positions)

    def indexes_after(self, key: Sequence[str]) -> tuple[TableIndex, ...]:
        """The secondary indexes after all clauses; `key` is the primary key then."""
        names = {item.old.casefold(): item.column.name for item in self.columns if item.old}
        return self.indexes.after(lambda column: names.get(column.casefold()), key)


def alter(command: AlterTableStatement, state: Alteration[Origin], begin: Callable[[], object]) -> None:
    """Apply all clauses.

    Args:
        command: the statement.
        state: the table; changed.
        begin: called before the first change, if a clause affects rows or the recorded definition.

    Raises:
        Unsupported: a clause is not understood.
    """
    for clause in command.clauses:
        if _touches(clause):
            begin()
        state.charset = _charset(clause) or state.charset  # it applies to new columns of earlier clauses, too
    for clause in command.clauses:
        _apply(clause, state)
    _put(state)


def _touches(clause: Clause) -> bool:
    """True if a clause affects rows or columns, or might."""
    match clause:
        case NoEffect() | AlterColumn() | OrderBy() | Partitioning():
            return False
        case PartitionClause(_, effect):
            return effect is not PartitionEffect.NONE
        case AddConstraint(_, constraint):
            return isinstance(constraint, PrimaryKey)
        case DropConstraint(_, primary):
            return primary
        case RenameIndex():
            return False
        case AddColumn() | AddColumns() | ModifyColumn() | ChangeColumn() | RenameColumn() | DropColumn() | RenameTo():
            return True
        case ConvertCharset() | TableCharset() | OtherOption() | ExchangeRows() | UnknownClause() | NotUnderstood():
            return True
        case _:
            assert_never(clause)


def _charset(clause: Clause) -> str:
    """Return the character set that a clause sets for the table; "" for none."""
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
        case AlterColumn(_, _, column, True, _, value):
            for one in state.columns:
                if one.old.casefold() == column.text.casefold():
                    one.default = None if one.defaulted else value
                    one.defaulted = True
        case DropColumn(_, optional, column):
            state.mention(optional, column.text)
            if state.had(column.text) or not optional:
                del state.columns[state.old_index(column.text)]
        case DropConstraint(_, primary, index, unique):
            state.key = () if primary else state.key
            if index:
                state.indexes.drop(index, unique=unique)
        case RenameIndex(_, before, after):
            state.indexes.rename(before, after)
        case RenameTo(_, table):
            state.rename = table.name
        case ConvertCharset(_, charset):
            _convert(charset, state)
        case PartitionClause(_, PartitionEffect.ROWS_GONE):
            state.meaning.partition_dropped()
        case PartitionClause(_, PartitionEffect.UNKNOWN) | ExchangeRows():
            stop("unknown ALTER TABLE clause")
        case NotUnderstood() | UnknownClause():
            clause.stop()
        case TableCharset(_, charset):
            state.charset = charset or state.charset
        case OtherOption(_, doubt, comment):
            if doubt:
                stop(doubt)
            state.comment = state.comment if comment is None else comment
        case NoEffect() | OrderBy() | Partitioning() | PartitionClause() | AlterColumn():
            pass
        case _:
            assert_never(clause)


def _add_constraint(constraint: Constraint, state: Alteration[Origin]) -> None:
    match constraint:
        case PrimaryKey(_, columns):
            state.key = tuple(part.column.text for part in columns)
        case Index() | ForeignKey():
            state.indexes.add(constraint)
        case CheckConstraint():
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
    add_own_indexes(state.indexes, defined, spec, state.dialect)
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
    add_own_indexes(state.indexes, defined, spec, state.dialect)
    item.column, item.generated, item.spec = spec.column, spec.generated, spec
    if defined.position is not None:
        state.moved.append((state.columns.pop(at), defined.position))


def _convert(charset: str, state: Alteration[Origin]) -> None:
    texts = [item for item in state.columns if item.column.base in (*CHARACTERS, "enum", "set")]
    state.meaning.converted(texts, charset)
    for item in texts:
        item.column = replace(item.column, charset=charset)
    state.charset = charset


def _put(state: Alteration[Origin]) -> None:
    """Move new and moved columns to their positions, in the order of the clauses, after all were applied."""
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
