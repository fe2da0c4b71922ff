"""Rows that a table had before its load began, beside those that the load or the stream has written since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from connector.ddl.syntax.tokens import quoted
from connector.log.compact.net_changes import Images
from connector.targets.marks import Marks
from connector.targets.mysql.rows.marks import marked_columns, same_key
from connector.targets.mysql.rows.partial_rows import PartialRows
from connector.targets.mysql.rows.table_statements import TableStatements
from connector.targets.mysql.sql.names import own


class OlderRows:
    """The rows of a table that are not marked.

    Args:
        statements: of the table.
        marks: the table's.
    """

    def __init__(self, statements: TableStatements, marks: Marks) -> None:
        self._statements = statements
        self._marks = marks

    def mark(self, images: Images) -> None:
        """Mark the keys of rows: they are not older any more."""
        if not self._marks.name:
            return
        head = f"INSERT IGNORE INTO {own(self._marks.name)} ({marked_columns(self._marks)}) VALUES ".encode()
        for text, _, _ in self._statements.value_lists(images, self._marks.key):
            self._statements.run(head + text)

    def delete_holders(self, images: Iterable[Images], copies: Sequence[PartialRows]) -> None:
        """Delete older rows that hold a value that a new row has in a unique index.

        The source has no such row: it is read later, or has gone.

        Args:
            images: new rows.
            copies: further new rows.
        """
        statements, marks = self._statements, self._marks
        joined, older = "", ""
        if marks.name:
            key = [statements.columns[index] for index in marks.key]
            joined, older = f" LEFT JOIN {own(marks.name)} AS k ON {same_key(key)}", " AND k.k0 IS NULL"
        for unique in marks.unique_keys:
            head = f"DELETE t FROM {statements.name} AS t{joined} WHERE "
            for some in images:
                for condition, _, _ in statements.conditions(some, unique, "t."):
                    statements.run(head.encode() + condition + older.encode())
            same = " AND ".join(
                f"t.{name} = s.{name}" for name in (quoted(statements.columns[index]) for index in unique)
            )
            for copy in copies:
                statements.run(
                    f"DELETE t FROM {statements.name} AS t JOIN {copy.name} AS s ON {same}{joined} WHERE TRUE{older}"
                )
