"""A table that the applier created: its columns as MySQL defines them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace

from connector.log.transaction.layout import Column, TableLayout, TableName


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the source.

    Args:
        layout: the columns in the source's order, and the primary key.
        charset: the default character set of text columns; "" if only the source knows.
        generated: the columns whose values the source computes.
        defaults: the known defaults by the column's name, as the log would have the values. They are not part of the
            target's table, so they are not compared.
        transaction: the metadata columns, which only the target has.
    """

    layout: TableLayout
    charset: str = ""
    generated: frozenset[str] = frozenset()
    defaults: tuple[tuple[str, int | float | str | bytes | None], ...] = field(default=(), compare=False)
    transaction: tuple[Column, ...] = ()

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
) -> Table:
    """Make a table from columns and the names of its key's columns."""
    columns = tuple(columns)
    index = {column.name.casefold(): at for at, column in enumerate(columns)}
    layout = TableLayout(name, columns, tuple(index[part.casefold()] for part in key))
    return Table(layout, charset, frozenset(generated), tuple((defaults or {}).items()), transaction)


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
    return make_table(
        name,
        columns,
        stored["key"],
        stored["charset"],
        stored["generated"],
        defaults=defaults,
        transaction=transaction,
    )
