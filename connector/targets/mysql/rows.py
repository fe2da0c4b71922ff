"""Applies net changes to a table of MySQL, and compares the number of rows of each statement with the log.

Changed rows are deleted and inserted again, many in a statement: unique values may swap, and one statement form serves
full images of any kind. Foreign keys are not checked in the applier's session, so a delete has no further effects but
those of triggers. Rows of which the log has only some columns, and that cannot be changed in place, are copied to a
temporary table, changed there and inserted again (`PartialRows`).

Rows of a table without a key are deleted one image after the other, as many as the log has, by comparing all columns;
where equal values can be stored in different bytes, these are compared, too. Metadata columns are not compared; if the
table has them, rows of the newest transactions are deleted first.

A savepoint before the first statement lets an error name the rows that are missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import pymysql

from connector.errors import PreflightError, TargetDiffers, ValueNotRepresentable
from connector.log.compact.net_changes import Images, NetChanges
from connector.log.transaction.layout import TableLayout
from connector.targets.ddl.loads import NOT_LOADED
from connector.targets.marks import Marks
from connector.targets.mysql.connection import LENIENT_MODE, SQL_MODE, ServerSession
from connector.targets.mysql.errors import code_of
from connector.targets.mysql.literals import equals, shown, value_literal
from connector.targets.mysql.marks import marked_columns, same_key, unique_indexes
from connector.targets.mysql.names import names, own, quoted, table_name
from connector.targets.mysql.partial_rows import PartialRows
from connector.targets.mysql.sql_values import NotALiteral, value_rows
from connector.targets.mysql.table_facts import TableFacts
from connector.targets.mysql.types import literal_kinds
from connector.targets.operations import Value
from connector.targets.table import Table
from connector.targets.target_schema import go_on_without
from connector.targets.values import rows as decoded

NAMED: Final = 5  # of the keys that a change does not find
CHUNK_BYTES: Final = 1 << 19
CHUNK_ROWS: Final = 2000
TOGETHER: Final = 200  # small statements in one round trip
_DUPLICATE: Final = (1062, 1169, 1586)
_TRUNCATED: Final = 1265  # of an ENUM
_SAVEPOINT: Final = "SAVEPOINT thl"


class RowWriter:
    """Applies the changes of one table.

    Args:
        session: in the open transaction.
        table: the table.
        net: the changes; inserts have all columns.
        marked: the marks, if the table also has rows that are older than its load. What holds a value of a new row in a
            unique index is deleted unless it is marked.
        facts: what the table does by itself.
    """

    def __init__(
        self, session: ServerSession, table: Table, net: NetChanges, marked: Marks | None, facts: TableFacts
    ) -> None:
        self._session = session
        self._table = table
        self._net = net
        self._marked = marked
        self._facts = facts
        self._layout = net.layout
        self._name = table_name(table.name)
        self._kinds = literal_kinds(net.layout, mariadb=session.mariadb)
        self._columns = [column.name for column in net.layout.columns]
        self._key = list(net.layout.key)
        self._key_columns = _listed(self._columns[index] for index in self._key)
        self._written = [index for index, name in enumerate(self._columns) if name not in facts.computed]
        self._into = f"INSERT INTO {self._name} ({names(self._columns[index] for index in self._written)}) "
        self._limit = max(1024, min(CHUNK_BYTES, session.max_packet // 4))

    def write(self) -> None:
        """Apply deletes, then updates, then inserts.

        Raises:
            TargetDiffers: a row to delete or update is missing, or a row to insert exists.
            ValueNotRepresentable: a column cannot store a value.
            PreflightError: a row is larger than the server's max_allowed_packet.
        """
        net = self._net
        self._session.query(_SAVEPOINT)
        moved = PartialRows(self, "thl_moved", net.partial.moved) if net.partial and len(net.partial.moved) else None
        copies = moved is not None or (net.partial is not None and len(net.partial.changed) and self._has_unique())
        changed = PartialRows(self, "thl_changed", net.partial.changed) if copies and net.partial is not None else None
        if moved is not None:
            moved.take(must_exist=True)
        if changed is not None:
            changed.take(must_exist=not net.again)
        self._deletes()
        if len(net.updates):
            self._delete(net.updates, "updated", strict=True)
        if moved is not None and net.again:
            moved.delete_new_keys()
        if self._marked is not None:
            self._delete_holders([part for part in (moved, changed) if part is not None])
        if changed is None and net.partial is not None:
            self._change_in_place(net.partial.changed)
        for images in (net.updates, net.inserts):
            self._insert(images)
        if moved is not None:
            moved.put_back()
            moved.mark()
        if changed is not None:
            changed.put_back()  # not marked: an older row of which the log has some columns stays older

    def _has_unique(self) -> bool:
        return bool(unique_indexes(self._session, self._table.name))

    def _deletes(self) -> None:
        if not len(self._net.deletes):
            return
        if self._key:
            self._delete(self._net.deletes, "deleted", strict=not self._net.again)
        else:
            self._delete_equal()

    def _delete(self, images: Images, done: str, *, strict: bool) -> None:
        """Delete the rows of the images' keys, and compare their number."""
        for text, first, end in self.chunks(images, self._key):
            count = self.run(b"DELETE FROM %s WHERE %s IN (%s)" % (*self._bytes(self._name, self._key_columns), text))
            if strict and count != end - first:
                raise self._missing_rows(images, range(first, end), count, done)

    def _insert(self, images: Images) -> None:
        into = self._into
        tail = b""
        if self._net.replaces:
            tail = self._replacing().encode()
        for text, first, end in self.chunks(images, self._written):
            statement = into.encode() + b"VALUES " + text + tail
            try:
                count = self.run(statement, "inserted")
            except pymysql.MySQLError as error:
                labels = self._without_label(images, first, end) if code_of(error) == _TRUNCATED else 0
                if not labels:
                    raise
                count = self._insert_without_labels(statement, labels, error)
            if not self._net.replaces and count != end - first:
                raise self._miscounted(count, end - first, "inserted")
        if self._marked is not None and self._marked.name:
            self._mark(images)

    def _without_label(self, images: Images, first: int, end: int) -> int:
        """The number of values that no label of their ENUM has: '' is what MySQL stores for a value that was none."""
        enums = [
            index
            for index in self._written
            if self._layout.columns[index].type == "enum" and "" not in self._layout.columns[index].labels
        ]
        rows = decoded(images.data, images.ends, len(self._columns), enums)[first:end] if enums else []
        return sum(value == "" for row in rows for value in row)

    def _insert_without_labels(self, statement: bytes, labels: int, refused: pymysql.MySQLError) -> int:
        """Insert rows with such values, which no strict session takes; every warning must be about one of them."""
        self._session.query(f"SET SESSION sql_mode = '{LENIENT_MODE}'")
        count = self.run(statement, "inserted")
        ((warnings,),) = self._session.rows("SHOW COUNT(*) WARNINGS")
        codes = {int(code) for _, code, _ in self._session.rows("SHOW WARNINGS")}
        self._session.query(f"SET SESSION sql_mode = '{SQL_MODE}'")
        if int(warnings) != labels or codes != {_TRUNCATED}:
            raise refused
        return count

    def _replacing(self) -> str:
        """The end of an INSERT that replaces rows with the same key, without deleting them."""
        # The key, too: a collation may take other bytes for equal ones.
        if self._session.mariadb:
            written = (quoted(self._columns[index]) for index in self._written)
            return f" ON DUPLICATE KEY UPDATE {', '.join(f'{name} = VALUES({name})' for name in written)}"
        aliases = ", ".join(f"c{index}" for index in self._written)
        assignments = ", ".join(f"{quoted(self._columns[index])} = thl_new.c{index}" for index in self._written)
        return f" AS thl_new ({aliases}) ON DUPLICATE KEY UPDATE {assignments}"

    def _mark(self, images: Images) -> None:
        if self._marked is None:
            return
        for text, _, _ in self.chunks(images, list(self._marked.key)):
            into = f"INSERT IGNORE INTO {own(self._marked.name)} ({marked_columns(self._marked)}) VALUES "
            self.run(into.encode() + text)

    def _change_in_place(self, images: Images) -> None:
        """Set the columns that the log has of each row."""
        statements: list[str] = []
        bases: list[tuple[Value, ...]] = []
        for values, absent, base in self.partial_rows(images):
            present = [index for index in self._written if index not in absent and index not in self._key]
            assigned = present or [index for index in self._key if index in self._written]
            kept = (quoted(self._columns[index]) for index in self.kept(absent))
            assignments = ", ".join(
                [*(self._assigned(index, values[index]) for index in assigned), *(f"{name} = {name}" for name in kept)]
            )
            statements.append(f"UPDATE {self._name} SET {assignments} WHERE {self.matches(base)}")
            bases.append(base)
            if len(statements) == TOGETHER or sum(map(len, statements)) > self._limit:
                self._change(statements, bases)
        self._change(statements, bases)

    def kept(self, absent: Collection[int]) -> list[int]:
        """The absent columns that an UPDATE has to assign, or the server would change them."""
        return [index for index in absent if self._columns[index] in self._facts.touched]

    def _change(self, statements: list[str], bases: list[tuple[Value, ...]]) -> None:
        if not statements:
            return
        for count, base in zip(self.run_many(statements, "updated"), bases, strict=True):
            if count != 1 and not self._net.again:
                raise self.missing(base)
        statements.clear()
        bases.clear()

    def _assigned(self, index: int, value: Value) -> str:
        return f"{quoted(self._columns[index])} = {self.literal(index, value)}"

    def literal(self, index: int, value: Value) -> str:
        """A value of a column as a literal."""
        return value_literal(self._layout.columns[index], value, mariadb=self._session.mariadb)

    def matches(self, base: Sequence[Value], of: str = "") -> str:
        """The condition that a row has this key."""
        return " AND ".join(
            f"{of}{quoted(self._columns[index])} = {self.literal(index, value)}"
            for index, value in zip(self._key, base, strict=True)
        )

    def _delete_holders(self, parts: list[PartialRows]) -> None:
        """Delete rows that are older than the load and hold a value that a new row has in a unique index.

        The source has no such row: it is read later, or has gone.
        """
        marked = self._marked
        if marked is None:
            return
        key = [self._columns[index] for index in marked.key]
        joined, older = "", ""
        if marked.name:
            joined, older = f" LEFT JOIN {own(marked.name)} AS k ON {same_key(key)}", " AND k.k0 IS NULL"
        for unique in marked.unique_keys:
            columns = _listed(f"t.{quoted(self._columns[index])}" for index in unique)
            head = f"DELETE t FROM {self._name} AS t{joined} WHERE {columns} IN ("
            for images in (self._net.updates, self._net.inserts):
                for text, _, _ in self.chunks(images, list(unique)):
                    self.run(head.encode() + text + b")" + older.encode())
            for part in parts:
                same = " AND ".join(
                    f"t.{quoted(self._columns[index])} = s.{quoted(self._columns[index])}" for index in unique
                )
                self.run(f"DELETE t FROM {self._name} AS t JOIN {part.name} AS s ON {same}{joined} WHERE TRUE{older}")

    def _delete_equal(self) -> None:
        """Delete rows that equal an image in all columns, as many as the log has of each."""
        own_columns = self._layout.columns[: len(self._table.columns)]
        images = self._net.deletes
        compared = [index for index in range(len(own_columns)) if index in self._written]
        own_columns = tuple(own_columns[index] for index in compared)
        found = decoded(images.data, images.ends, len(self._columns), compared)
        # -0.0 and 0.0 are equal, but not the same value.
        copies = Counter((row, repr(row)) for row in found)
        order = ""
        if self._table.transaction:
            order = f" ORDER BY {quoted(self._table.transaction[0].name)} DESC"
        mariadb = self._session.mariadb
        statements = [
            f"DELETE FROM {self._name} WHERE {equals(own_columns, row, mariadb=mariadb)}{order} LIMIT {n}"
            for (row, _), n in copies.items()
        ]
        rows = list(copies.items())
        done = 0
        while done < len(statements):
            some = statements[done : done + TOGETHER]
            counts = self.run_many(some, "deleted")
            for ((row, _), wanted), count in zip(rows[done : done + TOGETHER], counts, strict=True):
                if count != wanted:
                    missing = ", ".join(
                        f"{column.name}={value!r:.100}" for column, value in zip(own_columns, row, strict=True)
                    )
                    raise self._miscounted(count, wanted, "deleted", missing)
            done += len(some)

    def chunks(self, images: Images, order: list[int]) -> Iterator[tuple[bytes, int, int]]:
        """Yield lists of literals of some images' values, with the first image and the one after the last."""
        done = 0
        while done < len(images):
            try:
                text, end = value_rows(images.data, images.ends, done, self._kinds, order, self._limit, CHUNK_ROWS)
            except NotALiteral as error:
                raise self._no_literal(images, error) from error
            yield text, done, end
            done = end

    def partial_rows(self, images: Images) -> Iterator[tuple[tuple[Value, ...], frozenset[int], tuple[Value, ...]]]:
        """For each partial image its values, the indexes of absent columns, and the row's current key."""
        width = len(self._columns)
        for row in decoded(images.data, images.ends, width + 1 + len(self._key)):
            bits = row[width]
            if not isinstance(bits, bytes):
                raise TypeError("a partial image without its bitmap")
            absent = frozenset(index for index in range(width) if not bits[index // 8] >> index % 8 & 1)
            yield row[:width], absent, row[width + 1 :]

    def run(self, sql: bytes | str, done: str = "changed") -> int:
        """Run a statement; return the number of its rows."""
        if len(sql) >= self._session.max_packet:
            raise PreflightError(
                f"a row of {self._table.name} needs a statement of {len(sql)} bytes, and the target's "
                f"max_allowed_packet is {self._session.max_packet}",
                hint=f"SET GLOBAL max_allowed_packet = {min(1 << 30, 1 << len(sql).bit_length())} on the target, and "
                "in its option file",
                table=self._table.name,
            )
        try:
            return self._session.query(sql)
        except pymysql.MySQLError as error:
            raise self._refused(error, done) from error

    def run_many(self, statements: Sequence[str], done: str) -> list[int]:
        """Run statements in one round trip; return the number of rows of each."""
        if sum(map(len, statements)) * 4 >= self._session.max_packet:
            return [self.run(one, done) for one in statements]
        try:
            return self._session.many(statements)
        except pymysql.MySQLError as error:
            raise self._refused(error, done) from error

    def _refused(self, error: pymysql.MySQLError, done: str) -> Exception:
        if code_of(error) in _DUPLICATE:
            return TargetDiffers(
                f"rows of {self._table.name} could not be {done}: {error.args[1]}", table=self._table.name
            )
        return error

    def missing(self, base: Sequence[Value]) -> TargetDiffers:
        """The error of a row that the table lacks."""
        hint = NOT_LOADED if self._net.again else ""
        what = f"a row of {self._table.name} to change is missing"
        return TargetDiffers(what, hint=hint, table=self._table.name, rows=shown(self._layout, base))

    def _missing_rows(self, images: Images, chunk: range, count: int, done: str) -> TargetDiffers:
        """The error of a wrong count, with some of the keys that the table lacks."""
        keys = decoded(images.data, images.ends, len(self._columns), self._key)[chunk.start : chunk.stop]
        self._session.query("ROLLBACK TO SAVEPOINT thl")
        absent: list[str] = []
        for key in keys:
            if not self._session.rows(f"SELECT 1 FROM {self._name} WHERE {self.matches(key)} LIMIT 1"):
                absent.append(shown(self._layout, key))
                if len(absent) == min(NAMED, len(chunk) - count):
                    break
        return self._miscounted(count, len(chunk), done, "; ".join(absent))

    def _miscounted(self, count: int, expected: int, done: str, rows: str = "") -> TargetDiffers:
        what = f"{count} rows of {self._table.name} were {done}, and the log has {expected}"
        return TargetDiffers(what, table=self._table.name, rows=rows or None)

    def _no_literal(self, images: Images, error: NotALiteral) -> ValueNotRepresentable:
        row = decoded(images.data, images.ends, len(self._columns))[error.image]
        column = self._layout.columns[error.column]
        shown_columns = self._key or range(len(self._columns))
        return ValueNotRepresentable(
            f"a column of type {column.type} has the value {row[error.column]!r:.200}, which its type does not have",
            hint=go_on_without(self._table.name),
            table=self._table.name,
            column=column.name,
            row=", ".join(f"{self._columns[index]}={row[index]!r:.100}" for index in shown_columns),
        )

    @staticmethod
    def _bytes(*texts: str) -> tuple[bytes, ...]:
        return tuple(text.encode() for text in texts)

    @property
    def session(self) -> ServerSession:
        """The session."""
        return self._session

    @property
    def source(self) -> tuple[str, list[str], list[int], list[int]]:
        """The table's quoted name, its columns, the indexes of the key and those of the columns that are written."""
        return self._name, self._columns, self._key, self._written

    @property
    def layout(self) -> TableLayout:
        """The layout of the rows."""
        return self._layout

    @property
    def marks(self) -> Marks | None:
        """The table's marks."""
        return self._marked


def _listed(columns: Iterator[str] | Sequence[str]) -> str:
    """Columns in parentheses; a single one without."""
    found = [name if name.startswith(("`", "t.")) else quoted(name) for name in columns]
    return found[0] if len(found) == 1 else f"({', '.join(found)})"
