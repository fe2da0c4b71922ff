"""The rules of `source.filters.tables` by the names in the log: which tables of the source are published under one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from connector.config.filters import Filters, TableRule
from connector.log.transaction.layout import TableName
from connector.mysql.transforms.filters import Filter


@dataclass(frozen=True, slots=True)
class SourceRule:
    """A table of the source, as it is published.

    Args:
        folded: for a source that does not distinguish upper and lower case.
        name: the table's name on the source.
        rule: its rule; None: it is published unchanged.
        actions: the changes of it that are published.
    """

    folded: int
    name: TableName
    rule: TableRule | None
    actions: tuple[str, ...]

    def column(self, published: str) -> str | None:
        """The name on the source, in lower case, of a published column; None: none is published so."""
        found = published.lower()
        names = {} if self.rule is None else {old.lower(): new.lower() for old, new in self.rule.rename.items()}
        source = next((old for old, new in names.items() if new == found), found)
        return None if source == found and names.get(found, found) != found else source


class SourceRules:
    """The rules of some filters.

    It is not known here whether the source distinguishes upper and lower case: each table is there for both.

    Args:
        filters: the filters.
    """

    def __init__(self, filters: Filters) -> None:
        self._rules = filters.tables
        self._filters = [Filter(filters, folded) for folded in (0, 1)]

    def of(self, published: TableName) -> list[SourceRule]:
        """The tables of the source that are published under a name; none: it is not captured."""
        names = sorted({published, *(name for rule in self._rules for name in _published_as(rule, published))})
        return [
            SourceRule(folded, name, filter.rule(*name), tuple(sorted(filter.actions(*name))))
            for folded, filter in enumerate(self._filters)
            for name in names
            if filter.captures(*name) and filter.published_name(name) == published
        ]


def _published_as(rule: TableRule, published: TableName) -> Iterator[TableName]:
    """The tables that a rule publishes under a name."""
    schema, dot, table = rule.publish_as.partition(".")
    if schema != published.schema or (dot and table != published.table):
        return
    for pattern in rule.match:
        of_schema, _, of_table = pattern.strip().partition(".")
        yield TableName(of_schema, of_table if dot else published.table)
