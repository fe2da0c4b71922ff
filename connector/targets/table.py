"""A table that the applier created: its columns as MySQL defines them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from connector.ddl.indexes import KeyPart, TableIndex
from connector.log.transaction.layout import Column, TableLayout, TableName


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the source, or the history of one.

    Args:
        layout: the columns in the source's order, and the primary key.
        charset: the default character set of text columns; "" if only the source knows.
        generated: the columns whose values the source computes.
        defaults: the known defaults by the column's name, as the log would have the values. They are not part of the
            target's table, so they are not compared.
        holds_nulls: columns that are NOT NULL by their definition, and for which the log's rows may have NULL because a
            rule of the source publishes it. They may be NULL on the target.
        declared: columns whose definition has a default that a target's column can have: that of `defaults`, or, if it
            is not there, the current time. Not those that get one because they are NOT NULL. They are not compared.
        comment: the table's comment. Comments are not compared.
        comments: the columns' comments by the column's name; a column without one is not there.
        transaction: the metadata columns, which only the target has.
        indexes: the source's secondary indexes, in order; None if they are not known, because an earlier version
            created the table. They are not compared: the target may have them or not.
        history_of: the table whose history this is; None: it is a table of the source.
    """

    layout: TableLayout
    charset: str = ""
    generated: frozenset[str] = frozenset()
    defaults: tuple[tuple[str, int | float | str | bytes | None], ...] = field(default=(), compare=False)
    transaction: tuple[Column, ...] = ()
    indexes: tuple[TableIndex, ...] | None = field(default=None, compare=False)
    holds_nulls: frozenset[str] = frozenset()
    declared: frozenset[str] = field(default=frozenset(), compare=False)
    comment: str = field(default="", compare=False)
    comments: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    history_of: TableName | None = None

    @property
    def name(self) -> TableName:
        """The name on the source."""
        return self.layout.name

    @property
    def columns(self) -> tuple[Column, ...]:
        """The source's columns, in order."""
        return self.layout.columns

    @property
    def stored(self) -> tuple[Column, ...]:
        """All columns on the target, in order: the source's, then the metadata columns."""
        return self.columns + self.transaction

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the primary key's columns, in the key's order."""
        return tuple(self.columns[index].name for index in self.layout.key)

    def column(self, name: str) -> Column | None:
        """The column of this name; like MySQL, case-insensitive."""
        wanted = name.casefold()
        return next((column for column in self.columns if column.name.casefold() == wanted), None)

    def is_not_null(self, column: Column) -> bool:
        """True if a target declares a column NOT NULL, besides the key's columns.

        Of a computed column the log may have no value, and metadata columns have none in rows that are older than they.
        """
        return not column.nullable and column.name not in self.generated | self.holds_nulls

    def nulls_of(self, layout: TableLayout) -> frozenset[str]:
        """The columns that are NOT NULL here, and that may be NULL in rows of a layout of the log."""
        return frozenset(
            column.name
            for column, logged in zip(self.columns, layout.columns, strict=False)  # metadata columns follow
            if logged.nullable and self.is_not_null(column) and column.name not in self.key
        )

    @property
    def attributes(self) -> tuple[object, ...]:
        """The attributes of a target's table that are not compared: defaults and comments."""
        return self.defaults, self.declared, self.comment, self.comments

    @property
    def uncompared(self) -> tuple[object, ...]:
        """The fields that do not count when tables are compared, but are stored when they change."""
        return self.attributes, self.indexes

    def defaults_of(self) -> dict[str, int | float | str | bytes | None]:
        """The known defaults, by the column's name."""
        return dict(self.defaults)

    def renamed(self, name: TableName) -> Table:
        """The same table under another name."""
        return replace(self, layout=replace(self.layout, name=name))


def make_table(
    name: TableName,
    columns: Iterable[Column],
    key: Iterable[str],
    charset: str = "",
    generated: Iterable[str] = (),
    *,
    defaults: Mapping[str, int | float | str | bytes | None] | None = None,
    transaction: tuple[Column, ...] = (),
    indexes: tuple[TableIndex, ...] | None = None,
    holds_nulls: Iterable[str] = (),
    declared: Iterable[str] = (),
    comment: str = "",
    comments: Mapping[str, str] | None = None,
) -> Table:
    """Make a table from columns and the names of its key's columns."""
    columns = tuple(columns)
    index = {column.name.casefold(): at for at, column in enumerate(columns)}
    layout = TableLayout(name, columns, tuple(index[part.casefold()] for part in key))
    return Table(
        layout,
        charset,
        frozenset(generated),
        tuple((defaults or {}).items()),
        transaction,
        indexes,
        holds_nulls=frozenset(holds_nulls),
        declared=frozenset(declared),
        comment=comment,
        comments=tuple((column, text) for column, text in (comments or {}).items() if text),
    )


def to_json(table: Table) -> str:
    """The definition of a table, as `thl_tables` stores it."""
    return json.dumps(
        {
            "columns": [asdict(column) for column in table.columns],
            "key": table.key,
            "charset": table.charset,
            "generated": sorted(table.generated),
            "defaults": {
                name: {"hex": value.hex()} if isinstance(value, bytes) else value for name, value in table.defaults
            },
            **({"transaction": [asdict(column) for column in table.transaction]} if table.transaction else {}),
            **({} if table.indexes is None else {"indexes": [_index_json(index) for index in table.indexes]}),
            **({"declared": sorted(table.declared)} if table.declared else {}),
            **({"comment": table.comment} if table.comment else {}),
            **({"comments": dict(table.comments)} if table.comments else {}),
            **({"holds_nulls": sorted(table.holds_nulls)} if table.holds_nulls else {}),
            **({"history_of": table.history_of} if table.history_of else {}),
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def from_json(name: TableName, text: str) -> Table:
    """The table that `to_json` wrote."""
    stored = json.loads(text)
    columns, transaction = (
        tuple(Column(**{**column, "labels": tuple(column["labels"])}) for column in stored.get(which, ()))
        for which in ("columns", "transaction")
    )
    defaults = {  # tables of earlier versions have no known defaults
        column: bytes.fromhex(value["hex"]) if isinstance(value, dict) else value
        for column, value in stored.get("defaults", {}).items()
    }
    made = make_table(
        name,
        columns,
        stored["key"],
        stored["charset"],
        stored["generated"],
        defaults=defaults,
        transaction=transaction,
        indexes=_indexes(stored.get("indexes")),
        holds_nulls=stored.get("holds_nulls", ()),
        declared=stored.get("declared", ()),
        comment=stored.get("comment", ""),
        comments=stored.get("comments"),
    )
    return replace(made, history_of=TableName(*stored["history_of"])) if "history_of" in stored else made


def _index_json(index: TableIndex) -> dict[str, Any]:
    """The fields of an index; `generated` only if true, so that earlier versions read the others."""
    return {name: value for name, value in asdict(index).items() if name != "generated" or value}


def _indexes(stored: Sequence[Mapping[str, Any]] | None) -> tuple[TableIndex, ...] | None:
    if stored is None:
        return None
    return tuple(TableIndex(**{**one, "parts": tuple(KeyPart(**part) for part in one["parts"])}) for one in stored)
