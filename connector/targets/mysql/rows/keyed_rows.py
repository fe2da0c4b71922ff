"""Whole rows of a table with a key: deleted by their keys, inserted, and replaced.

Rows are replaced by `INSERT … ON DUPLICATE KEY UPDATE` where the primary key is the table's only unique index, and it
is the key by which the log names rows; otherwise they are deleted and inserted again, because unique values may swap
within a commit, and a row could be found by another index than the key. The server's counts tell whether all rows were
there: of n rows it has inserted those that it counts as affected, less two for each that it counts as a duplicate.
"""

from __future__ import annotations

from typing import Final

import pymysql

from connector.ddl.syntax.tokens import quoted
from connector.log.compact.net_changes import Images
from connector.targets.mysql.rows.load_data import load_rows
from connector.targets.mysql.rows.table_statements import TableStatements
from connector.targets.mysql.server.errors import TRUNCATED, code_of
from connector.targets.mysql.sql.names import column_names
from connector.targets.values import rows as decoded

_SAVEPOINT: Final = "thl_replace"


class KeyedRows:
    """Deletes, inserts and replaces rows of one table.

    Args:
        statements: of the table.
    """

    def __init__(self, statements: TableStatements) -> None:
        self._statements = statements
        columns = [statements.columns[index] for index in statements.written]
        self._into = f"INSERT INTO {statements.name} ({column_names(columns)}) VALUES ".encode()

    def delete(self, images: Images, done: str, *, must_exist: bool) -> None:
        """Delete the rows of the images' keys.

        Args:
            images: whole images.
            done: the effect in words, for errors.
            must_exist: compare the number of rows.

        Raises:
            TargetDiffers: a row is missing, and must exist.
        """
        statements = self._statements
        head = f"DELETE FROM {statements.name} WHERE ".encode()
        for condition, first, end in statements.conditions(images, statements.key):
            count = statements.run(head + condition)
            if must_exist and count != end - first:
                raise statements.missing_rows(images, range(first, end), count, done)

    def insert(self, images: Images) -> None:
        """Insert rows.

        Raises:
            TargetDiffers: one exists.
        """
        statements = self._statements
        done = load_rows(statements, images)
        for text, first, end in statements.value_lists(images, statements.written, done):
            statement = self._into + text
            try:
                count = statements.run(statement, "inserted")
            except pymysql.MySQLError as error:
                labels = self._unlabelled(images, first, end) if code_of(error) == TRUNCATED else 0
                if not labels:
                    raise
                count = statements.run_without_labels(statement, labels, "inserted")
            if count != end - first:
                raise statements.miscounted(count, end - first, "inserted")

    def replace(self, images: Images, *, must_exist: bool) -> None:
        """Replace rows in place, in a table that takes upserts.

        Raises:
            TargetDiffers: a row is missing, and must exist.
        """
        if not len(images):
            return
        self._statements.session.query(f"SAVEPOINT {_SAVEPOINT}")
        if not self._upsert(images, must_exist=must_exist):
            self._statements.session.roll_back(_SAVEPOINT)
            self.delete(images, "updated", must_exist=must_exist)
            self.insert(images)

    def _upsert(self, images: Images, *, must_exist: bool) -> bool:
        """Replace rows; return false if one is missing, or a value needs more than a statement."""
        statements = self._statements
        tail = self._on_duplicate()
        for text, first, end in statements.value_lists(images, statements.written):
            try:
                new = statements.run_upsert(self._into + text + tail, end - first)
            except pymysql.MySQLError as error:
                if code_of(error) != TRUNCATED:
                    raise
                return False
            if must_exist and new:
                return False
        return True

    def _on_duplicate(self) -> bytes:
        """The end of an INSERT that replaces rows with the same key."""
        statements = self._statements
        # The key, too: a collation may take other bytes for equal ones.
        written = {index: quoted(statements.columns[index]) for index in statements.written}
        if statements.session.mariadb:
            assignments = ", ".join(f"{name} = VALUES({name})" for name in written.values())
            return f" ON DUPLICATE KEY UPDATE {assignments}".encode()
        aliases = ", ".join(f"c{index}" for index in written)
        assignments = ", ".join(f"{name} = thl_new.c{index}" for index, name in written.items())
        return f" AS thl_new ({aliases}) ON DUPLICATE KEY UPDATE {assignments}".encode()

    def _unlabelled(self, images: Images, first: int, end: int) -> int:
        """`TableStatements.unlabelled` of some images."""
        statements = self._statements
        enums = [index for index in statements.written if statements.layout.columns[index].type == "enum"]
        rows = decoded(images.data, images.ends, len(statements.columns), enums)[first:end] if enums else []
        return sum(statements.unlabelled(dict(zip(enums, row, strict=True))) for row in rows)
