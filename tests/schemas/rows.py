"""Rows, changes and DDL for tables of which nothing is known but their definition, in the session of a source."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pymysql

_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_LONGEST: Final = 80  # characters or bytes of a value
_ASCII: Final = "abc XYZ019,;.-_'\"%"
_OTHERS: Final = {"utf8mb4": "éü€中😀", "utf8mb3": "éü€中", "latin1": "éü€"}
_LABEL: Final = re.compile(r"'((?:[^']|'')*)'")
_ROWS: Final = 12
_OUT_OF_RANGE: Final = 1690  # of an expression in a trigger or a generated column: IGNORE lets it stop the statement
_MOST_REFUSED: Final = 0.1  # of the statements
_SESSION: Final = "sql_mode = 'NO_AUTO_VALUE_ON_ZERO', foreign_key_checks = 0, time_zone = '+00:00'"


@dataclass(frozen=True)
class Column:
    """A column that can be written, as information_schema has it."""

    name: str
    kind: str
    type: str
    length: int
    charset: str
    nullable: bool
    counts: bool  # AUTO_INCREMENT

    @property
    def quoted(self) -> str:
        return "`" + self.name.replace("`", "``") + "`"


class Writer:
    """Writes to the tables of a database.

    Args:
        connection: with the source.
        database: the database.
        seed: of all values.

    Attributes:
        refused: the number of statements that the schema itself refused.
    """

    def __init__(self, connection: Any, database: str, seed: int = 1) -> None:
        self._db = connection
        self._database = database
        self._rng = random.Random(seed)
        self.refused = 0
        self._changes = 0
        self._query(f"USE `{database}`")
        self._query(f"SET SESSION {_SESSION}")

    def _query(self, sql: str) -> list[tuple[Any, ...]]:
        with self._db.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def _change(self, sql: str) -> None:
        """Change rows, unless the schema's own triggers refuse these values."""
        self._changes += 1
        try:
            self._query(sql)
        except pymysql.MySQLError as error:
            if error.args[0] != _OUT_OF_RANGE:
                raise
            self.refused += 1

    def check(self) -> None:
        """Raises AssertionError if so much was refused that little is left to compare."""
        assert self.refused <= _MOST_REFUSED * self._changes, f"{self._database}: {self.refused} of {self._changes}"

    def tables(self) -> list[str]:
        where = f"table_schema = '{self._database}' AND table_type = 'BASE TABLE' ORDER BY 1"
        return [name for (name,) in self._query(f"SELECT table_name FROM information_schema.tables WHERE {where}")]

    def change(self) -> None:
        """Insert, update and delete rows of every table, and roll some back."""
        for table in self.tables():
            columns = list(self._columns(table))
            self._query("BEGIN" if self._has_transactions(table) else "DO 0")  # with GTIDs others are changed alone
            for _ in range(_ROWS):
                self._insert(table, columns)
            for _ in range(4):
                self._update(table, columns)
            self._change(f"DELETE FROM `{table}` ORDER BY RAND({self._rng.randrange(99)}) LIMIT 3")
            self._query("COMMIT" if self._rng.random() < 0.9 else "ROLLBACK")

    def _has_transactions(self, table: str) -> bool:
        where = f"table_schema = '{self._database}' AND table_name = '{table}' AND engine = 'InnoDB'"
        return bool(self._query(f"SELECT 1 FROM information_schema.tables WHERE {where}"))

    def alter(self) -> None:
        """Change some definitions, with rows in between."""
        tables = self.tables()
        for number, table in enumerate(self._rng.sample(tables, min(6, len(tables)))):
            columns = list(self._columns(table))
            name = self._rng.choice(columns).quoted
            listed = ", ".join(column.quoted for column in columns)
            for sql in (
                f"ALTER TABLE `{table}` ADD COLUMN thl_added INT NOT NULL DEFAULT 5 COMMENT 'é' FIRST",
                f"ALTER TABLE `{table}` ADD COLUMN thl_note VARCHAR(30) AFTER {name}, ADD KEY (thl_note, thl_added)",
                f"ALTER TABLE `{table}` RENAME COLUMN thl_note TO thl_noted, COMMENT 'altered'",
                f"CREATE TABLE copy_{number} LIKE `{table}`",
                f"INSERT INTO copy_{number} ({listed}) SELECT {listed} FROM `{table}`",
                f"UPDATE copy_{number} SET thl_added = 6, thl_noted = 'é'",
                f"RENAME TABLE `{table}` TO other, copy_{number} TO `{table}`, other TO copy_{number}",
                f"ALTER TABLE `{table}` DROP COLUMN thl_noted",
                f"TRUNCATE TABLE copy_{number}" if number % 3 == 0 else f"ANALYZE TABLE copy_{number}",
                f"DROP TABLE copy_{number}" if number % 3 == 1 else f"ALTER TABLE copy_{number} RENAME moved_{number}",
            ):
                self._query(sql)
            self._insert(table, list(self._columns(table)))

    def _columns(self, table: str) -> Iterator[Column]:
        found = self._query(
            "SELECT column_name, data_type, column_type, character_maximum_length, character_set_name, "
            "is_nullable = 'YES', extra LIKE '%auto_increment%' FROM information_schema.columns WHERE "
            f"table_schema = '{self._database}' AND table_name = '{table}' AND extra NOT LIKE '% GENERATED%' "
            "ORDER BY ordinal_position"
        )
        for name, kind, whole, length, charset, nullable, counts in found:
            yield Column(name, kind, whole, int(length or 0), charset or "", bool(nullable), bool(counts))

    def _insert(self, table: str, columns: list[Column]) -> None:
        written = [one for one in columns if not one.counts or self._rng.random() < 0.3]
        listed, values = ", ".join(one.quoted for one in written), ", ".join(map(self._value, written))
        self._change(f"INSERT IGNORE INTO `{table}` ({listed}) VALUES ({values})")

    def _update(self, table: str, columns: list[Column]) -> None:
        chosen = self._rng.sample(columns, min(3, len(columns)))
        changes = ", ".join(f"{one.quoted} = {self._value(one)}" for one in chosen)
        limit = "ORDER BY RAND(3) LIMIT 1" if any(one.counts for one in chosen) else "ORDER BY RAND(5) LIMIT 4"
        self._change(f"UPDATE IGNORE `{table}` SET {changes} {limit}")

    def _value(self, column: Column) -> str:
        rng = self._rng
        if column.nullable and rng.random() < 0.15:
            return "NULL"
        kind = column.kind
        if kind in _BITS:
            bits = _BITS[kind]
            low, high = (0, 2**bits - 1) if "unsigned" in column.type else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            if column.counts:
                low, high = 1, min(high, 10**6)
            return str(rng.choice((low, high, 0, rng.randint(low, high), rng.randrange(100))))
        if kind == "bit":
            return str(rng.randrange(2 ** int(re.findall(r"\d+", column.type)[0])))
        if kind == "decimal":
            digits, scale = map(int, re.findall(r"\d+", column.type))
            number = rng.randrange(10**digits)
            return f"{'' if 'unsigned' in column.type else rng.choice(('', '-'))}{number // 10**scale}." + (
                f"{number % 10**scale:0{scale}}" if scale else "0"
            )
        if kind in ("float", "double"):
            return repr(rng.choice((0.0, rng.uniform(0, 1e6), 0.1)))
        if kind in ("date", "datetime", "timestamp", "time", "year"):
            return self._time(kind)
        if kind in ("enum", "set"):
            return f"'{rng.choice(_LABEL.findall(column.type))}'"
        if kind == "json":
            return f"'{json.dumps({'n': rng.randrange(99), 'a': [1.5, None, True]})}'"
        if kind in ("geometry", "point"):
            return f"ST_GeomFromText('POINT({rng.randrange(90)} {rng.randrange(90)})')"
        size = rng.randrange(min(column.length, _LONGEST) + 1)
        if kind.endswith(("binary", "blob")):
            return f"x'{rng.randbytes(size).hex()}'" if size else "''"
        text = "".join(rng.choices(_ASCII + _OTHERS.get(column.charset, ""), k=size))
        return f"CONVERT(x'{text.encode().hex()}' USING utf8mb4)" if text else "''"

    def _time(self, kind: str) -> str:
        rng = self._rng
        if kind == "year":
            return str(rng.randint(1901, 2155))
        clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}.{rng.randrange(10**6):06}"
        if kind == "time":
            return f"'{clock}'"
        day = f"{rng.randint(1971, 2037)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        zero = rng.random() < 0.1
        return "'0000-00-00 00:00:00'" if zero else f"'{day}'" if kind == "date" else f"'{day} {clock}'"
