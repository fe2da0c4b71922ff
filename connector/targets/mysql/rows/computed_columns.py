"""Compares the values of generated columns that depend on the session in which they are computed.

The date of a TIMESTAMP is that of the session's time zone; `/` has the digits of its div_precision_increment. A STORED
column of such an expression has what the source's clients got. No statement can write that, so the target computes it
again, in the applier's session: the rows are right only if it gets the same. A VIRTUAL column is computed by readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from connector.errors import ValueNotRepresentable
from connector.log.compact.net_changes import NetChanges
from connector.targets.mysql.rows.table_statements import TOGETHER, TableStatements
from connector.targets.mysql.sql.literals import equals, shown
from connector.targets.operations import Value
from connector.targets.target_schema import go_on_without
from connector.targets.values import rows as decoded

_Values = Mapping[int, Value]
"""The values of some of a row's columns, by their indexes."""


def check_computed(statements: TableStatements, net: NetChanges) -> None:
    """Compare such columns in the rows that changes have written.

    Args:
        statements: of the table.
        net: the changes; inserts have all columns.

    Raises:
        ValueNotRepresentable: the target has computed another value.
    """
    columns = statements.layout.columns
    computed = {index for index, column in enumerate(columns) if column.name in statements.facts.by_session}
    if not computed:
        return
    compared = sorted({*(statements.key or range(len(columns))), *computed})
    rows = list(_written(statements, net, compared))
    together = TOGETHER if statements.key else 1  # without a key the table may have more of them
    for first in range(0, len(rows), together):
        some = rows[first : first + together]
        if _count(statements, some) < len(some):
            wrong = next((row for row in some if not _count(statements, [row])), some[0])
            raise _differs(statements, wrong, computed)


def _written(statements: TableStatements, net: NetChanges, compared: Sequence[int]) -> Iterator[_Values]:
    for images in (net.updates, net.inserts):
        for row in decoded(images.data, images.ends, len(statements.columns), compared):
            yield dict(zip(compared, row, strict=True))
    for images in (net.partial.changed, net.partial.moved) if net.partial is not None else ():
        for values, absent, base in statements.partial_rows(images):
            key = dict(zip(statements.key, base, strict=True))
            yield key | {index: values[index] for index in compared if index not in absent}


def _count(statements: TableStatements, rows: Sequence[_Values]) -> int:
    """The number of rows that have all values of one of these."""
    columns, mariadb = statements.layout.columns, statements.session.mariadb
    conditions = " OR ".join(
        f"({equals([columns[index] for index in row], list(row.values()), mariadb=mariadb)})" for row in rows
    )
    ((found,),) = statements.session.rows(f"SELECT count(*) FROM {statements.name} WHERE {conditions}")
    return int(found)


def _differs(statements: TableStatements, row: _Values, computed: set[int]) -> ValueNotRepresentable:
    names = ", ".join(statements.columns[index] for index in sorted(computed))
    name = statements.table.name
    return ValueNotRepresentable(
        f"the target computes another value of {names} than the source did: the expression depends on the session, as "
        "on its time zone",
        hint=f"make it an ordinary column on the source (MODIFY without GENERATED), or target.definitions: plain for a "
        f"new target; {go_on_without(name)}",
        table=name,
        column=names,
        row=shown(statements.layout, [row[index] for index in statements.key]),
    )
