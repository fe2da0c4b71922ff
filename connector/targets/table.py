"""What we know of a table that we made: its columns as MySQL defines them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace

from connector.log.transaction.layout import Column, TableLayout, TableName


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the source.

    Args:
        layout: its columns, in the source's order, and its primary key.
        charset: what text columns get that name none; "" when only the source knows.
        generated: the columns whose values the source computes.
        defaults: by name what columns have in a new row that gives them no value, where that is known for certain:
            as the log would have it. Not a part of what a target's table is, so not compared.
        transaction: the columns beside its own, on the target alone, that tell which transaction wrote a row.
    """

    layout: TableLayout
    charset: str = ""
    generated: frozenset[str] = frozenset()
    defaults: tuple[tuple[str, int | float | str | bytes | None], ...] = field(default=(), compare=False)
    transaction: tuple[Column, ...] = ()

    @property
    def name(self) -> TableName:
        """Its name on the source."""
        return self.layout.name

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its columns, in order."""
        return self.layout.columns

    @property
    def stored(self) -> tuple[Column, ...]:
        """All columns that the target has, in order."""
        return self.columns + self.transaction

    @property
    def key(self) -> tuple[str, ...]:
        """The names of its key's columns, in the key's order."""
        return tuple(self.columns[index].name for index in self.layout.key)

    def column(self, name: str) -> Column | None:
        """The column of this name, whatever its case: MySQL's column names have none."""
        wanted = name.casefold()
        return next((column for column in self.columns if column.name.casefold() == wanted), None)

    def defaults_of(self) -> dict[str, int | float | str | bytes | None]:
        """The defaults that are known, by the column's name."""
        return dict(self.defaults)

    def renamed(self, name: TableName) -> Table:
        """The same under another name."""
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
    """A table of columns and the names of those that are its key."""
    columns = tuple(columns)
    index = {column.name.casefold(): at for at, column in enumerate(columns)}
    layout = TableLayout(name, columns, tuple(index[part.casefold()] for part in key))
    return Table(layout, charset, frozenset(generated), tuple((defaults or {}).items()), transaction)


def to_json(table: Table) -> str:
    """How `thl_tables` keeps a table."""
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
    defaults = {  # a table that was made before these were kept has none that are known
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
