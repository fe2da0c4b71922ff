"""Statements about one table: literals of its rows, conditions, and errors that name the table and rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import pymysql

from connector.ddl.syntax.tokens import quoted
from connector.ddl.syntax.type_names import CHARACTERS
from connector.errors import PreflightError, TargetDiffers, ValueNotRepresentable
from connector.log.compact.net_changes import Images
from connector.log.transaction.layout import TableLayout
from connector.targets.ddl.loads import NOT_LOADED
from connector.targets.mysql.server.connection import LENIENT_MODE, SQL_MODE, ServerSession
from connector.targets.mysql.server.errors import DUPLICATES, TRUNCATED, code_of
from connector.targets.mysql.server.table_facts import TableFacts
from connector.targets.mysql.sql.literals import shown, value_literal
from connector.targets.mysql.sql.names import table_name
from connector.targets.mysql.sql.sql_values import NotALiteral, value_rows
from connector.targets.mysql.sql.types import literal_kinds
from connector.targets.operations import Value
from connector.targets.table import Table
from connector.targets.target_schema import go_on_without
from connector.targets.types import parse
from connector.targets.values import rows as decoded

STATEMENT_BYTES: Final = 1 << 19
STATEMENT_ROWS: Final = 2000
TOGETHER: Final = 200  # small statements in one round trip
NAMED: Final = 5  # of the keys that a change does not find
SAVEPOINT: Final = "thl"  # before the first statement about the table: an error names rows by the state there

UNICODE: Final = frozenset({"ascii", "utf8", "utf8mb3", "utf8mb4"})  # character sets whose bytes are those of UTF-8
_TEXTS: Final = frozenset({*CHARACTERS, "enum", "set"})


class TableStatements:
    """Runs the statements that apply changes to one table.

    Args:
        session: in the open transaction.
        table: the table.
        layout: of the rows.
        facts: what the table does by itself.
        again: the rows may have been applied before.

    Attributes:
        name: the table's quoted name.
        columns: the names of all columns of the rows.
        key: the indexes of the key's columns.
        written: the indexes of the columns that are written.
        limit: bytes of a statement, roughly.
    """

    def __init__(
        self, session: ServerSession, table: Table, layout: TableLayout, facts: TableFacts, *, again: bool
    ) -> None:
        self.session = session
        self.table = table
        self.layout = layout
        self.facts = facts
        self.again = again
        self.name = table_name(table.name)
        self.columns = [column.name for column in layout.columns]
        self.key = list(layout.key)
        self.written = [index for index, name in enumerate(self.columns) if name not in facts.computed]
        self.limit = max(1024, min(STATEMENT_BYTES, session.max_packet // 4))
        self._kinds = literal_kinds(layout, mariadb=session.mariadb)

    def value_lists(self, images: Images, order: Sequence[int], done: int = 0) -> Iterator[tuple[bytes, int, int]]:
        """Yield lists of literals of some images' values, with the first image and the one after the last.

        Args:
            images: whole images.
            order: the indexes of the values to write.
            done: the number of images to pass over.

        Raises:
            ValueNotRepresentable: a value that its column's type does not have.
        """
        while done < len(images):
            try:
                text, end = value_rows(
                    images.data, images.ends, done, self._kinds, list(order), self.limit, STATEMENT_ROWS
                )
            except NotALiteral as error:
                raise self._no_literal(images, error) from error
            yield text, done, end
            done = end

    def conditions(self, images: Images, places: Sequence[int], of: str = "") -> Iterator[tuple[bytes, int, int]]:
        """Yield conditions that a row has the values of one of some images, with the first and the one after the last.

        Args:
            images: whole images.
            places: the indexes of the values.
            of: the prefix of the columns' names.

        Raises:
            ValueNotRepresentable: a value that its column's type does not have.
        """
        if not self._compares_bytes(places):
            head = f"{self.listed(places, of)} IN (".encode()
            for text, first, end in self.value_lists(images, places):
                yield head + text + b")", first, end
            return
        first, parts, size = 0, list[str](), 0
        for end, row in enumerate(decoded(images.data, images.ends, len(self.columns), places), 1):
            parts.append(self.matches(row, of, places))
            size += len(parts[-1])
            if len(parts) == TOGETHER or size > self.limit or end == len(images):
                yield f"({' OR '.join(parts)})".encode(), first, end
                first, parts, size = end, [], 0

    def _compares_bytes(self, places: Sequence[int]) -> bool:
        """True if `(a, b) IN (…)` may miss rows: a MariaDB compares a text's bytes with those of the literal, in UTF-8.

        It converts the literal if columns are compared one by one, which takes twice as long.
        """
        columns = [self.table.column(self.columns[index]) for index in places]
        return (
            self.session.mariadb
            and len(places) > 1
            and any(
                column is None or (parse(column.type).base in _TEXTS and column.charset not in UNICODE)
                for column in columns
            )
        )

    def partial_rows(self, images: Images) -> Iterator[tuple[tuple[Value, ...], frozenset[int], tuple[Value, ...]]]:
        """For each partial image its values, the indexes of absent columns, and the row's current key."""
        width = len(self.columns)
        for row in decoded(images.data, images.ends, width + 1 + len(self.key)):
            bits = row[width]
            if not isinstance(bits, bytes):
                raise TypeError("a partial image without its bitmap")
            absent = frozenset(index for index in range(width) if not bits[index // 8] >> index % 8 & 1)
            yield row[:width], absent, row[width + 1 :]

    def kept(self, assigned: Collection[int]) -> list[int]:
        """The other columns that an UPDATE has to assign, or the server would change them.

        A TIMESTAMP may be one: explicit_defaults_for_timestamp=OFF gives it ON UPDATE.
        """
        columns = self.layout.columns
        return [
            index
            for index in self.written
            if index not in assigned
            and (self.columns[index] in self.facts.touched or parse(columns[index].type).base == "timestamp")
        ]

    def literal(self, index: int, value: Value) -> str:
        """A value of a column as a literal."""
        return value_literal(self.layout.columns[index], value, mariadb=self.session.mariadb)

    def matches(self, base: Sequence[Value], of: str = "", places: Sequence[int] | None = None) -> str:
        """The condition that a row has this key, or these values of other columns."""
        return " AND ".join(
            f"{of}{quoted(self.columns[index])} = {self.literal(index, value)}"
            for index, value in zip(self.key if places is None else places, base, strict=True)
        )

    def listed(self, places: Iterable[int], of: str = "") -> str:
        """Columns in parentheses; a single one without."""
        found = [f"{of}{quoted(self.columns[index])}" for index in places]
        return found[0] if len(found) == 1 else f"({', '.join(found)})"

    def run_upsert(self, sql: bytes, rows: int) -> int:
        """Run an INSERT … ON DUPLICATE KEY UPDATE of some rows; return the number of those that were not there."""
        self._check_size(sql)
        try:
            return self.session.upsert(sql, rows)
        except pymysql.MySQLError as error:
            raise self.refused(error, "updated") from error

    def run(self, sql: bytes | str, done: str = "changed") -> int:
        """Run a statement; return the number of its rows.

        Args:
            sql: the statement.
            done: its effect in words, for errors.

        Raises:
            PreflightError: it is larger than the server's max_allowed_packet.
            TargetDiffers: a unique index has one of its values already.
        """
        self._check_size(sql)
        try:
            return self.session.query(sql)
        except pymysql.MySQLError as error:
            raise self.refused(error, done) from error

    def _check_size(self, sql: bytes | str) -> None:
        size = len(sql if isinstance(sql, bytes) else sql.encode())
        if size >= self.session.max_packet:
            raise PreflightError(
                f"a row of {self.table.name} needs a statement of {size} bytes, and the target's "
                f"max_allowed_packet is {self.session.max_packet}",
                hint=f"SET GLOBAL max_allowed_packet = {min(1 << 30, 1 << size.bit_length())} on the target, and "
                "in its option file",
                table=self.table.name,
            )

    def unlabelled(self, values: Mapping[int, Value]) -> int:
        """The number of values that no label of their ENUM has: '' is what MySQL stores for a value that was none."""
        columns = self.layout.columns
        return sum(
            value == "" and columns[index].type == "enum" and "" not in columns[index].labels
            for index, value in values.items()
        )

    def run_without_labels(self, sql: bytes | str, labels: int, done: str) -> int:
        """Run a statement that writes such values, which no strict session takes; return the number of its rows.

        Raises:
            ValueNotRepresentable: the server has a warning about anything else.
        """
        session = self.session
        session.query(f"SET SESSION sql_mode = '{LENIENT_MODE}'")
        count = self.run(sql, done)
        ((warnings,),) = session.rows("SHOW COUNT(*) WARNINGS")
        found = session.rows("SHOW WARNINGS")
        session.query(f"SET SESSION sql_mode = '{SQL_MODE}'")
        if int(warnings) > labels or {int(code) for _, code, _ in found} - {TRUNCATED}:
            raise ValueNotRepresentable(
                f"values of {self.table.name} are not stored as they are: {'; '.join(str(one[2]) for one in found)}",
                hint=go_on_without(self.table.name),
                table=self.table.name,
            )
        return count

    def run_many(self, statements: Sequence[str], done: str) -> list[int]:
        """Run statements in one round trip; return the number of rows of each."""
        if sum(map(len, statements)) * 4 >= self.session.max_packet:
            return [self.run(one, done) for one in statements]
        try:
            return self.session.many(statements)
        except pymysql.MySQLError as error:
            raise self.refused(error, done) from error

    def refused(self, error: pymysql.MySQLError, done: str) -> Exception:
        """The error of a statement that the server refuses."""
        if code_of(error) in DUPLICATES:
            return TargetDiffers(
                f"rows of {self.table.name} could not be {done}: {error.args[1]}", table=self.table.name
            )
        return error

    def missing(self, base: Sequence[Value]) -> TargetDiffers:
        """The error of a row that the table lacks."""
        hint = NOT_LOADED if self.again else ""
        what = f"a row of {self.table.name} to change is missing"
        return TargetDiffers(what, hint=hint, table=self.table.name, rows=shown(self.layout, base))

    def missing_rows(self, images: Images, rows: range, count: int, done: str) -> TargetDiffers:
        """The error of a wrong count, with some of the keys that the table lacks.

        Args:
            images: whole images.
            rows: the indexes of those of one statement.
            count: the number of rows that it found.
            done: its effect in words.
        """
        keys = decoded(images.data, images.ends, len(self.columns), self.key)[rows.start : rows.stop]
        self.session.roll_back(SAVEPOINT)
        absent: list[str] = []
        for key in keys:
            if not self.session.rows(f"SELECT 1 FROM {self.name} WHERE {self.matches(key)} LIMIT 1"):
                absent.append(shown(self.layout, key))
                if len(absent) == min(NAMED, len(rows) - count):
                    break
        return self.miscounted(count, len(rows), done, "; ".join(absent))

    def miscounted(self, count: int, expected: int, done: str, rows: str = "") -> TargetDiffers:
        """The error of a wrong count."""
        what = f"{count} rows of {self.table.name} were {done}, and the log has {expected}"
        return TargetDiffers(what, table=self.table.name, rows=rows or None)

    def _no_literal(self, images: Images, error: NotALiteral) -> ValueNotRepresentable:
        row = decoded(images.data, images.ends, len(self.columns))[error.image]
        column = self.layout.columns[error.column]
        shown_columns = self.key or range(len(self.columns))
        return ValueNotRepresentable(
            f"a column of type {column.type} has the value {row[error.column]!r:.200}, which its type does not have",
            hint=go_on_without(self.table.name),
            table=self.table.name,
            column=column.name,
            row=", ".join(f"{self.columns[index]}={row[index]!r:.100}" for index in shown_columns),
        )
