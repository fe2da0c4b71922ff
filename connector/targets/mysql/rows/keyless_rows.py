"""Rows of a table without a key: deleted one image after the other, as many as the log has of each.

All columns are compared; where equal values can be stored in different bytes, these are compared, too. Metadata columns
are not compared; if the table has them, rows of the newest transactions are deleted first.
"""

from __future__ import annotations

from collections import Counter

from connector.ddl.syntax.tokens import quoted
from connector.log.compact.net_changes import Images
from connector.targets.mysql.rows.table_statements import TOGETHER, TableStatements
from connector.targets.mysql.sql.literals import equals
from connector.targets.values import rows as decoded


def delete_equal(statements: TableStatements, images: Images) -> None:
    """Delete rows that equal an image in all columns, as many as the log has of each.

    Args:
        statements: of the table.
        images: whole images.

    Raises:
        TargetDiffers: the table has fewer.
    """
    own_columns = statements.layout.columns[: len(statements.table.columns)]
    compared = [index for index in range(len(own_columns)) if index in statements.written]
    own_columns = tuple(own_columns[index] for index in compared)
    found = decoded(images.data, images.ends, len(statements.columns), compared)
    # -0.0 and 0.0 are equal, but not the same value.
    copies = Counter((row, repr(row)) for row in found)
    order = f" ORDER BY {quoted(statements.table.transaction[0].name)} DESC" if statements.table.transaction else ""
    mariadb = statements.session.mariadb
    deletes = [
        f"DELETE FROM {statements.name} WHERE {equals(own_columns, row, mariadb=mariadb)}{order} LIMIT {n}"
        for (row, _), n in copies.items()
    ]
    rows = list(copies.items())
    for done in range(0, len(deletes), TOGETHER):
        counts = statements.run_many(deletes[done : done + TOGETHER], "deleted")
        for ((row, _), wanted), count in zip(rows[done : done + TOGETHER], counts, strict=True):
            if count != wanted:
                pairs = zip(own_columns, row, strict=True)
                missing = ", ".join(f"{column.name}={value!r:.100}" for column, value in pairs)
                raise statements.miscounted(count, wanted, "deleted", missing)
