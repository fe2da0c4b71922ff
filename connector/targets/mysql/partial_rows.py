"""Rows of which the log has only some columns, where they cannot be changed in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connector.log.compact.net_changes import Images
from connector.targets.mysql.marks import marked_columns, same_key
from connector.targets.mysql.names import names, own, quoted

if TYPE_CHECKING:
    from connector.targets.mysql.rows import RowWriter


class PartialRows:
    """Rows of which the log has only some columns, in a temporary table, which no other session sees.

    Args:
        writer: of the table.
        name: the temporary table's name.
        images: the rows.
    """

    def __init__(self, writer: RowWriter, name: str, images: Images) -> None:
        self._writer = writer
        self.name = own(name)
        self._images = images
        self._rows = list(writer.partial_rows(images))

    def take(self, *, must_exist: bool) -> None:
        """Move the rows out of the table, and set what the log has of them.

        Raises:
            TargetDiffers: a row is missing, and must exist; one that is older than the table's load does not count.
        """
        writer, session = self._writer, self._writer.session
        table, columns, _, written = writer.source
        listed = names(columns[index] for index in written)
        session.query(f"DROP TEMPORARY TABLE IF EXISTS {self.name}")
        session.query(f"CREATE TEMPORARY TABLE {self.name} AS SELECT {listed}, 0 AS thl_done FROM {table} WHERE FALSE")
        marks = writer.marks
        older = ""
        if must_exist and marks is not None and marks.name:
            older = (
                f" AND EXISTS (SELECT 1 FROM {own(marks.name)} AS k WHERE {same_key(columns[i] for i in marks.key)})"
            )
        for _, _, base in self._rows:
            where = f"{writer.matches(base, 't.')}{older}"
            found = session.query(f"INSERT INTO {self.name} SELECT {listed}, 0 FROM {table} AS t WHERE {where}")
            if found != 1 and must_exist:
                raise writer.missing(base)
            session.query(f"DELETE FROM {table} WHERE {writer.matches(base)}")
        for values, absent, base in self._rows:
            given = [index for index in written if index not in absent]
            assignments = ", ".join(
                f"{quoted(columns[index])} = {writer.literal(index, values[index])}" for index in given
            )
            kept = (f"{quoted(columns[index])} = {quoted(columns[index])}" for index in writer.kept(absent))
            assignments = ", ".join(part for part in (assignments, *kept, "thl_done = 1") if part)
            writer.run(f"UPDATE {self.name} SET {assignments} WHERE {writer.matches(base)} AND thl_done = 0", "updated")

    def delete_new_keys(self) -> None:
        """Delete what the table has under the rows' new keys."""
        table, columns, key, _ = self._writer.source
        same = " AND ".join(f"t.{quoted(columns[index])} = s.{quoted(columns[index])}" for index in key)
        self._writer.run(f"DELETE t FROM {table} AS t JOIN {self.name} AS s ON {same}")

    def put_back(self) -> None:
        """Insert the rows into the table."""
        writer = self._writer
        table, columns, _, written = writer.source
        listed = names(columns[index] for index in written)
        writer.run(f"INSERT INTO {table} ({listed}) SELECT {listed} FROM {self.name}", "inserted")

    def mark(self) -> None:
        """Mark the keys of the rows."""
        marks, (_, columns, _, _) = self._writer.marks, self._writer.source
        if marks is not None and marks.name:
            keys = names(columns[index] for index in marks.key)
            self._writer.run(
                f"INSERT IGNORE INTO {own(marks.name)} ({marked_columns(marks)}) SELECT {keys} FROM {self.name}"
            )
