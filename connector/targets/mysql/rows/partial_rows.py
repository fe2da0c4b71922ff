"""Rows of which the log has only some columns, where they cannot be changed in place."""

from __future__ import annotations

from connector.ddl.syntax.tokens import quoted
from connector.log.compact.net_changes import Images
from connector.targets.marks import Marks
from connector.targets.mysql.rows.marks import marked_columns, same_key
from connector.targets.mysql.rows.table_statements import TableStatements
from connector.targets.mysql.sql.names import column_names, own


class PartialRows:
    """Rows of which the log has only some columns, in a temporary table, which no other session sees.

    Args:
        statements: of the table.
        name: the temporary table's name.
        images: the rows.
        marks: the table's; None: it has none.
    """

    def __init__(self, statements: TableStatements, name: str, images: Images, marks: Marks | None) -> None:
        self._statements = statements
        self.name = own(name)
        self._rows = list(statements.partial_rows(images))
        self._marks = marks if marks is not None and marks.name else None
        self._listed = column_names(statements.columns[index] for index in statements.written)

    def move_out(self, *, must_exist: bool) -> None:
        """Move the rows out of the table, and set what the log has of them.

        Raises:
            TargetDiffers: a row is missing, and must exist; one that is older than the table's load does not count.
        """
        statements, session, listed = self._statements, self._statements.session, self._listed
        session.query(f"DROP TEMPORARY TABLE IF EXISTS {self.name}")
        session.query(
            f"CREATE TEMPORARY TABLE {self.name} AS SELECT {listed}, 0 AS thl_done FROM {statements.name} WHERE FALSE"
        )
        newer = ""
        if must_exist and self._marks is not None:
            same = same_key(statements.columns[index] for index in self._marks.key)
            newer = f" AND EXISTS (SELECT 1 FROM {own(self._marks.name)} AS k WHERE {same})"
        for _, _, base in self._rows:
            where = f"{statements.matches(base, 't.')}{newer}"
            found = session.query(
                f"INSERT INTO {self.name} SELECT {listed}, 0 FROM {statements.name} AS t WHERE {where}"
            )
            if found != 1 and must_exist:
                raise statements.missing(base)
            session.query(f"DELETE FROM {statements.name} WHERE {statements.matches(base)}")
        for values, absent, base in self._rows:
            given = [index for index in statements.written if index not in absent]
            assignments = [
                f"{quoted(statements.columns[index])} = {statements.literal(index, values[index])}" for index in given
            ]
            kept = [quoted(statements.columns[index]) for index in statements.kept(given)]
            changes = ", ".join([*assignments, *(f"{name} = {name}" for name in kept), "thl_done = 1"])
            update = f"UPDATE {self.name} SET {changes} WHERE {statements.matches(base)} AND thl_done = 0"
            if labels := statements.unlabelled({index: values[index] for index in given}):
                statements.run_without_labels(update, labels, "updated")
            else:
                statements.run(update, "updated")

    def delete_new_keys(self) -> None:
        """Delete what the table has under the rows' new keys."""
        statements = self._statements
        same = " AND ".join(
            f"t.{name} = s.{name}" for name in (quoted(statements.columns[index]) for index in statements.key)
        )
        statements.run(f"DELETE t FROM {statements.name} AS t JOIN {self.name} AS s ON {same}")

    def insert_back(self) -> None:
        """Insert the rows into the table."""
        statement = f"INSERT INTO {self._statements.name} ({self._listed}) SELECT {self._listed} FROM {self.name}"
        self._statements.run(statement, "inserted")

    def mark(self) -> None:
        """Mark the keys of the rows, if the table has marks."""
        if self._marks is not None:
            keys = column_names(self._statements.columns[index] for index in self._marks.key)
            into = f"{own(self._marks.name)} ({marked_columns(self._marks)})"
            self._statements.run(f"INSERT IGNORE INTO {into} SELECT {keys} FROM {self.name}")
