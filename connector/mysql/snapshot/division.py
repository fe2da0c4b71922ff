"""Divides a table into chunks of about as many rows, while it is being read.

A key of one integer column is halved until a range has few enough rows by the optimizer's estimate, so a skewed key
gives narrow ranges where there are many rows. Other keys are walked along the index: the key that ends a chunk is
looked up from the key that ends the chunk before.

An estimate may be wrong: then a chunk is larger or smaller. Each row is in exactly one chunk in any case.
"""

from __future__ import annotations

from typing import Final

import pymysql

from connector.mysql.server.connection import Connection, query
from connector.mysql.snapshot.information_schema import SourceTable
from connector.mysql.snapshot.key_ranges import Bound, KeyRange

TOLERATED: Final = 1.5  # times `chunk_rows`: a range of up to so many rows is not halved
INVALID_TEXT: Final = 1300


class Division:
    """The chunks of one table, from the lowest key on. Not thread-safe.

    Args:
        table: the table.
        chunk_rows: approximate rows of a chunk; None: the table is one chunk.
    """

    def __init__(self, table: SourceTable, chunk_rows: int | None) -> None:
        self.exhausted = False
        self._table = table
        self._columns = table.divided_by
        self._rows = chunk_rows or 0
        self._begun = chunk_rows is None or not self._columns
        self._after = KeyRange()  # the rest of a table that is walked
        self._halved: list[tuple[int | None, int | None, int, int]] | None = None  # bounds; lowest and highest key
        self._halvings = 0

    def next(self, connection: Connection) -> KeyRange | None:
        """The next chunk; None if there is none left.

        Args:
            connection: a session in the load's view.
        """
        if self.exhausted:
            return None
        if not self._begun:
            self._begun = True
            bound = self._walked(connection)  # not the server's statistics, which may be of an empty table
            if bound is None:
                self.exhausted = True
                return KeyRange()
            if len(self._columns) == len(self._table.layout.key) == 1 and self._columns[0].integer:
                self._begin_halving(connection)
            else:
                chunk, self._after = KeyRange(None, bound), KeyRange(bound, None)
                return chunk
        if self._halved is not None:
            return self._next_half(connection)
        if self._after.after is not None and (bound := self._walked(connection)) is not None:
            chunk, self._after = KeyRange(self._after.after, bound), KeyRange(bound, None)
            return chunk
        self.exhausted = True
        return self._after

    def _begin_halving(self, connection: Connection) -> None:
        name = self._columns[0].name
        found = query(connection, f"SELECT MIN({name}) AS low, MAX({name}) AS high FROM {self._table.source}")[0]
        if found["low"] is not None:
            self._halved = [(None, None, int(found["low"]), int(found["high"]))]
            self._halvings = 64 + 8 * (self._table.estimate // self._rows)  # bounds the effect of wrong estimates

    def _next_half(self, connection: Connection) -> KeyRange:
        halved = self._halved
        if halved is None:
            raise RuntimeError("the table is not halved")
        after, to, low, high = halved.pop()
        whole = after is None and to is None
        while self._halvings > 0 and high - low >= self._rows and (whole or self._estimate(connection, low, high)):
            whole = False
            self._halvings -= 1
            below, above = self._neighbours(connection, (low + high) // 2)
            halved.append((below, to, above, high))
            to, high = below, below
        self.exhausted = not halved
        return KeyRange(None if after is None else (str(after),), None if to is None else (str(to),))

    def _neighbours(self, connection: Connection, middle: int) -> tuple[int, int]:
        """The keys on both sides of a number between two keys, so that no range is halved where there are no rows."""
        name, source = self._columns[0].name, self._table.source
        found = query(
            connection,
            f"SELECT (SELECT MAX({name}) FROM {source} WHERE {name} <= {middle}) AS below,"
            f" (SELECT MIN({name}) FROM {source} WHERE {name} > {middle}) AS above",
        )[0]
        return int(found["below"]), int(found["above"])

    def _estimate(self, connection: Connection, low: int, high: int) -> bool:
        """True if the optimizer finds too many rows for a chunk between two keys."""
        between = KeyRange((str(low - 1),), (str(high),)).condition(self._columns)
        plan = query(
            connection,
            f"EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM {self._table.source} FORCE INDEX (PRIMARY) WHERE {between}",
        )
        return sum(int(row["rows"] or 0) for row in plan) > TOLERATED * self._rows

    def _walked(self, connection: Connection) -> Bound | None:
        """The key that ends the next chunk; None if the rest is one chunk."""
        columns = self._columns
        condition = self._after.condition(columns)
        found = query(
            connection,
            f"SELECT {', '.join(f'{column.select} AS k{index}' for index, column in enumerate(columns))}"
            f" FROM {self._table.source} FORCE INDEX (PRIMARY)"
            + (f" WHERE {condition}" if condition else "")
            + f" ORDER BY {', '.join(column.name for column in columns)} LIMIT 1 OFFSET {self._rows - 1}",
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
