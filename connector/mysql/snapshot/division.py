"""Divides a table into chunks of about as many rows, while it is being read.

The primary key is walked along its index: the key that ends a chunk is looked up from the key that ends the one before.
Neither the server's statistics nor the distribution of keys matter. (Halving the range of an integer key by the
optimizer's estimates was tried: after a bulk insert MySQL 9 estimated one row where there were 512.)

Such a look-up reads the chunk's pages, and no other session can begin its next chunk meanwhile. So of a single integer
column a few rows are walked, and the chunk's end is reckoned from the numbers that they take, unless these are many
more than the rows.
"""

from __future__ import annotations

from typing import Final

import pymysql

from connector.config.snapshot import InitialLoad
from connector.ddl.syntax.type_names import INTEGERS
from connector.errors import LogDamaged
from connector.mysql.server.connection import Connection, query
from connector.mysql.snapshot.information_schema import SourceTable
from connector.mysql.snapshot.key_ranges import Bound, KeyRange, is_key

INVALID_TEXT: Final = 1300
CHUNK_BYTES: Final = 64 << 20  # approximate bytes of a chunk
SAMPLE_ROWS: Final = 1000  # whose numbers tell where a chunk ends
SPREAD: Final = 4  # numbers for a row, at most: behind the sample each number may have a row


def rows_of_a_chunk(table: SourceTable, settings: InitialLoad) -> int:
    """The rows of a chunk: `chunk_rows`, or as many as have CHUNK_BYTES, and no more than a second may publish."""
    of_bytes = CHUNK_BYTES * max(1, table.estimate) // max(1, table.bytes)
    return max(1, min(settings.chunk_rows, settings.max_rows_per_second or settings.chunk_rows, of_bytes))


class Division:
    """The chunks of one table, from the lowest key on. Not thread-safe.

    Args:
        table: the table.
        chunk_rows: rows of a chunk; None: the table is one chunk.
        after: the chunks begin after this key.
        exact: no chunk may have more than `chunk_rows` rows.

    Attributes:
        chunk_rows: as given; 0: the table is one chunk.

    Raises:
        LogDamaged: `after` is no key of the table: it would be part of the SQL that the source executes.
    """

    def __init__(
        self, table: SourceTable, chunk_rows: int | None, after: Bound | None = None, *, exact: bool = False
    ) -> None:
        self.exhausted = False
        self._table = table
        self._columns = table.divided_by
        if after is not None and not is_key(after, self._columns):
            raise LogDamaged("the control topic has something else than a key of the table", table=table.layout.name)
        self.chunk_rows = chunk_rows or 0
        self._whole = chunk_rows is None or not self._columns
        self._after = KeyRange(after)  # what is not divided yet
        self._reckons = (
            not (exact or self._whole)
            and len(self._columns) == len(table.layout.key) == 1
            and self._columns[0].base in INTEGERS
        )

    @property
    def after(self) -> Bound | None:
        """The greatest key of the chunks so far."""
        return self._after.after

    def next(self, connection: Connection) -> KeyRange | None:
        """The next chunk; None if there is none left.

        Args:
            connection: a session in the load's view.
        """
        if self.exhausted:
            return None
        if not self._whole and (bound := self._bound(connection)) is not None:
            chunk, self._after = KeyRange(self._after.after, bound), KeyRange(bound, None)
            return chunk
        self.exhausted = True
        return self._after

    def _bound(self, connection: Connection) -> Bound | None:
        """The key that ends the next chunk, which no row need have; None if the rest is one chunk."""
        if not self._reckons:
            return self._walked(connection, self.chunk_rows)
        rows = min(SAMPLE_ROWS, self.chunk_rows)
        near = self._walked(connection, rows)
        if near is None:
            return None
        begin = int(self.after[0]) if self.after else int((self._walked(connection, 1) or near)[0]) - 1
        numbers = int(near[0]) - begin
        if numbers > SPREAD * rows:
            return self._walked(connection, self.chunk_rows)
        return (str(begin + self.chunk_rows * numbers // rows),)

    def _walked(self, connection: Connection, rows: int) -> Bound | None:
        """The key of one of the next rows, the first being 1; None if there are fewer, or it has no exact literal."""
        columns = self._columns
        condition = self._after.condition(columns)
        found = query(
            connection,
            f"SELECT {', '.join(f'{column.select} AS k{index}' for index, column in enumerate(columns))}"
            f" FROM {self._table.source} FORCE INDEX (PRIMARY)"
            + (f" WHERE {condition}" if condition else "")
            + f" ORDER BY {', '.join(column.name for column in columns)} LIMIT 1 OFFSET {rows - 1}",
        )
        if not found:
            return None
        texts = [str(found[0][f"k{index}"]) for index in range(len(columns))]
        bound = tuple(column.literal(text) for column, text in zip(columns, texts, strict=True))
        return bound if self._exact(connection, texts, bound) else None

    def _exact(self, connection: Connection, texts: list[str], bound: Bound) -> bool:
        """True if the server takes the literals as they are: it does not where a text is invalid in its charset."""
        digits = {f"v{index}": texts[index].upper() for index, column in enumerate(self._columns) if column.hexadecimal}
        if not digits:
            return True
        try:
            found = query(connection, f"SELECT {', '.join(f'HEX({bound[int(v[1:])]}) AS {v}' for v in digits)}")
        except pymysql.MySQLError as error:
            if error.args and error.args[0] == INVALID_TEXT:
                return False
            raise
        return found[0] == digits
