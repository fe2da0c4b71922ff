"""The defaults of columns as they are published: with what a rule of `source.filters.tables` does to a value."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from connector.config.filters import Filters
from connector.errors import Unsupported
from connector.log.format import avro
from connector.log.ids import Action
from connector.log.transaction.layout import TableLayout
from connector.mysql.transforms.table_rules import RuledColumns, hash_key, row_transform
from connector.producer.records.conversion import split, value_of
from connector.producer.records.source_rules import SourceRule, SourceRules
from connector.targets.operations import ExistingColumn, KnownValue, UnknownValue, Value
from connector.targets.table import Table

INSERTED: Final = b"\x00\x02"  # what precedes the values of a row in Avro: no image before, one after

Origin = ExistingColumn | KnownValue | UnknownValue
Defaults = dict[str, bytes]
"""Column → its default in Avro. A column is not there if its default is not known."""


class PublishedDefaults:
    """The defaults of published tables.

    Args:
        filters: `source.filters`.
    """

    def __init__(self, filters: Filters) -> None:
        self._rules = SourceRules(filters) if filters.tables else None
        self._key = hash_key(filters)

    def of(self, table: Table) -> Defaults:
        """The defaults of a table. One that is published otherwise by rules of several tables is not known."""
        return self._published(table, table.defaults_of())

    def published(self, after: Table, origins: Sequence[Origin]) -> list[Origin]:
        """The origins of columns, with the values of new ones as rules publish them.

        Args:
            after: the table.
            origins: of each of its columns.
        """
        new = {
            column.name: origin.value
            for column, origin in zip(after.columns, origins, strict=True)
            if isinstance(origin, KnownValue)
        }
        if self._rules is None or not new:
            return [*origins]
        found = self._published(after, new)
        return [
            origin
            if column.name not in new
            else KnownValue(value_of(found[column.name]))
            if column.name in found
            else UnknownValue("rules publish the value of a new column otherwise")
            for column, origin in zip(after.columns, origins, strict=True)
        ]

    def _published(self, table: Table, values: Mapping[str, Value]) -> Defaults:
        plain = {name: avro.union(value) for name, value in values.items()}
        rules = [] if self._rules is None else self._rules.of(table.name)
        if not rules:
            return plain
        renamed = [one for one in rules if one.name != table.name]
        rules = renamed or rules  # whether the source has a table of the published name, too, is not known
        first, *others = [self._ruled(table, plain, one) for one in rules]
        return {name: value for name, value in first.items() if all(one.get(name) == value for one in others)}

    def _ruled(self, table: Table, plain: Defaults, ruled: SourceRule) -> Defaults:
        """The defaults as a rule publishes them: a row of them is transformed as each row of the source is."""
        if ruled.rule is None:
            return plain
        rules = RuledColumns(ruled.rule)
        names = {column.name: ruled.column(column.name) or column.name for column in table.columns}
        columns = tuple(replace(column, name=names[column.name]) for column in table.columns)
        try:
            transform = row_transform(TableLayout(ruled.name, columns, table.layout.key), ruled.rule, self._key)
        except Unsupported:  # the log has an earlier definition, which the rule of today does not fit
            return {}
        if transform is None:
            return plain
        row = INSERTED + avro.array(plain.get(column, avro.union(None)) for column in names)
        changed, *_ = transform.rows(Action.INSERT, row, array("Q", [len(row)]).tobytes(), b"", b"")
        kept = [column for column, name in names.items() if not rules.drops(name)]
        values = split(changed[len(INSERTED + avro.long(len(kept))) : -1], len(kept))
        found = dict(zip(kept, values, strict=True))
        return {one: value for one, value in found.items() if one in plain or _is_fixed(rules, names[one])}


def _is_fixed(rules: RuledColumns, column: str) -> bool:
    """True if a mask gives every row the same value."""
    mask = rules.mask(column)
    return mask is not None and mask.hash is None and mask.truncate is None
