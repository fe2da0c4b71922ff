"""A random workload for a log and its targets: rows of every type, in tables of several kinds, and DDL in between."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.torture.columns import Column, columns
from tests.torture.three_ways import SETTINGS, Setting

MANY: Final = 130  # rows of an insert: more than a target needs to load them in bulk
_SMALL: Final = ("int", "bigint", "decimal(10,2)", "varchar(40)", "datetime(3)", "date", "enum", "double", "binary(16)")
_FULL: Final = tuple(one for one in SETTINGS if one.row_image == "FULL")
_LABELS: Final = "'a','b','c'"


@dataclass
class Table:
    """A table as the workload has left it.

    Args:
        name: its name.
        columns: the columns but its key's, by name.
        keyed: true if it has the primary key `id`.
        unique: true if the column `u` is unique.
    """

    name: str
    columns: dict[str, Column]
    keyed: bool = True
    unique: bool = False
    keys: set[int] = field(default_factory=set)


class Workload:
    """Writes to a database of its own.

    Args:
        connection: with the source.
        database: the database; it is created.
        seed: of all choices.
    """

    def __init__(self, connection: Any, database: str, seed: int) -> None:
        self._db = connection
        self._rng = random.Random(seed)
        self._types = columns()
        self._next = 1
        self._names = 0
        self.statements = 0
        self.run(
            f"CREATE DATABASE {database} CHARACTER SET utf8mb4",
            f"USE {database}",
            "SET time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'",
        )
        small = [one for one in self._types if one.sql.startswith(_SMALL)]
        self.tables = [
            self._created("every", self._types),
            self._created("small", small, unique=True),
            self._created("twin", small, unique=True),
            self._created("keyless", small, keyed=False),
            self._created("parts", small, after="PARTITION BY KEY (id) PARTITIONS 3"),
        ]

    def run(self, *statements: str) -> int:
        with self._db.cursor() as cursor:
            for statement in statements:
                self.statements += 1
                found = cursor.execute(statement)
        return int(found)

    def _created(
        self, name: str, types: Sequence[Column], *, keyed: bool = True, unique: bool = False, after: str = ""
    ) -> Table:
        made = Table(name, {f"c{number}": one for number, one in enumerate(types)}, keyed, unique)
        parts = ["id INT NOT NULL AUTO_INCREMENT PRIMARY KEY" if keyed else "id INT NOT NULL"]
        parts += [f"{column} {one.sql}" for column, one in made.columns.items()]
        if unique:
            parts += ["u INT UNIQUE", "twice BIGINT AS (u * 2) STORED", "thrice BIGINT AS (u * 3)", "KEY (thrice)"]
        self.run(f"CREATE TABLE {name} ({', '.join(parts)}) ROW_FORMAT=DYNAMIC COMMENT 'of {name}' {after}")
        return made

    def step(self) -> None:
        """A transaction, or a DDL statement."""
        if self._rng.random() < 0.12:
            self._rng.choice(self._ddl())(self._rng.choice(self.tables))
        else:
            self._transaction()

    def _transaction(self) -> None:
        rng = self._rng
        tables = rng.sample(self.tables, rng.randint(1, 3))
        self._log(rng.choice(SETTINGS if all(table.keyed for table in tables) else _FULL))
        before = {table.name: set(table.keys) for table in self.tables}
        self.run("BEGIN")
        for table in tables:
            for _ in range(rng.randint(1, 3)):
                rng.choice((self._insert, self._update, self._delete, self._move, self._swap))(table)
        if rng.random() < 0.1:
            self.run("ROLLBACK")
            for table in self.tables:
                table.keys = before[table.name]
        else:
            self.run("COMMIT")

    def _log(self, setting: Setting) -> None:
        self.run(
            f"SET SESSION binlog_row_image = {setting.row_image}, "
            f"binlog_transaction_compression = {int(setting.compressed)}, "
            f"binlog_row_value_options = '{'PARTIAL_JSON' if setting.partial_json else ''}'"
        )

    def _value(self, column: Column) -> str:
        return "NULL" if self._rng.random() < 0.05 else column.make(self._rng)

    def _insert(self, table: Table) -> None:
        rows = self._rng.choice((1, 2, 9, MANY if len(table.columns) < 20 else 20))
        keys = [*range(self._next, self._next + rows)]
        self._next += rows
        table.keys.update(keys)
        names = ["id", *table.columns, *(["u"] if table.unique else [])]
        values = [
            [str(key), *map(self._value, table.columns.values()), *([str(key)] if table.unique else [])] for key in keys
        ]
        listed = ", ".join(f"({', '.join(row)})" for row in values)
        self.run(f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {listed}")
        if not table.keyed and self._rng.random() < 0.5:  # equal rows
            self.run(f"INSERT INTO {table.name} SELECT * FROM {table.name} WHERE id = {keys[0]}")

    def _some(self, table: Table, most: int) -> list[int]:
        return self._rng.sample(sorted(table.keys), min(most, len(table.keys)))

    def _update(self, table: Table) -> None:
        for key in self._some(table, self._rng.choice((1, 5, 40))):
            names = self._rng.sample(sorted(table.columns), self._rng.randint(1, min(4, len(table.columns))))
            changes = ", ".join(f"{name} = {self._value(table.columns[name])}" for name in names)
            self.run(f"UPDATE {table.name} SET {changes} WHERE id = {key}")
        for name in (name for name, column in table.columns.items() if column.sql == "json"):
            for key in self._some(table, 3):
                partly = f"JSON_REMOVE(JSON_SET({name}, '$.n', {self._rng.randrange(99)}, '$.a', 'b'), '$.t')"
                self.run(f"UPDATE {table.name} SET {name} = {partly} WHERE id = {key}")

    def _delete(self, table: Table) -> None:
        gone = self._some(table, self._rng.choice((1, 3, 30)))
        if gone:
            self.run(f"DELETE FROM {table.name} WHERE id IN ({', '.join(map(str, gone))})")
            table.keys.difference_update(gone)

    def _move(self, table: Table) -> None:
        """Change keys; some become what others were."""
        for key in self._some(table, 5):
            new, self._next = self._next, self._next + 1
            self.run(f"UPDATE {table.name} SET id = {new} WHERE id = {key}")
            table.keys.remove(key)
            table.keys.add(new)
            if self._rng.random() < 0.5:
                values = ", ".join(map(self._value, table.columns.values()))
                self.run(f"INSERT INTO {table.name} (id, {', '.join(table.columns)}) VALUES ({key}, {values})")
                table.keys.add(key)

    def _swap(self, table: Table) -> None:
        """Give two rows each other's unique value."""
        chosen = self._some(table, 2)
        if not table.unique or len(chosen) < 2:
            return
        one, other = chosen
        self.run(
            f"SELECT u INTO @u FROM {table.name} WHERE id = {one}",
            f"SELECT u INTO @v FROM {table.name} WHERE id = {other}",
            f"UPDATE {table.name} SET u = NULL WHERE id = {one}",
            f"UPDATE {table.name} SET u = @u WHERE id = {other}",
            f"UPDATE {table.name} SET u = @v WHERE id = {one}",
        )

    def _ddl(self) -> Sequence[Callable[[Table], None]]:
        return (
            *(self._add, self._add, self._drop, self._rename_column, self._modify, self._index, self._rename),
            *(self._ring, self._copy, self._select, self._truncate, self._comment, self._partition),
        )

    def _name(self, of: str) -> str:
        self._names += 1
        return f"{of}{self._names}"

    def _add(self, table: Table) -> None:
        if len(table.columns) > 75:
            return
        name, column = self._name("a"), self._rng.choice([one for one in self._types if "char" not in one.sql])
        place = self._rng.choice(("", " FIRST", f" AFTER {self._rng.choice(['id', *table.columns])}"))
        given = "NULL" if column.sql.endswith("null") or self._rng.random() < 0.7 else "NOT NULL"
        if given == "NOT NULL" and column.sql.startswith(("json", "blob", "longblob", "timestamp")):
            given = "NULL"
        definition = f"{column.sql.removesuffix(' null')} {given}"
        if column.sql.startswith("int") and self._rng.random() < 0.5:
            definition += " DEFAULT 7"
        self.run(f"ALTER TABLE {table.name} ADD COLUMN {name} {definition}{place}")
        if given == "NULL":
            table.columns[name] = column  # others get the default of an insert that does not name them

    def _drop(self, table: Table) -> None:
        if len(table.columns) > 3:
            name = self._rng.choice(sorted(table.columns))
            del table.columns[name]
            self.run(f"ALTER TABLE {table.name} DROP COLUMN {name}")

    def _rename_column(self, table: Table) -> None:
        """Rename two columns to each other, or one to a new name."""
        one, other = self._rng.sample(sorted(table.columns), 2)
        if self._rng.random() < 0.5:
            self.run(f"ALTER TABLE {table.name} RENAME COLUMN {one} TO {other}, RENAME COLUMN {other} TO {one}")
            table.columns[one], table.columns[other] = table.columns[other], table.columns[one]
        else:
            new = self._name("r")
            self.run(f"ALTER TABLE {table.name} RENAME COLUMN {one} TO {new}")
            table.columns[new] = table.columns.pop(one)

    def _modify(self, table: Table) -> None:
        """Widen a column, or move it."""
        name = self._rng.choice(sorted(table.columns))
        sql = table.columns[name].sql
        wider = {"int": "bigint", "varchar(40)": "varchar(90)", "decimal(10,2)": "decimal(14,4)", "float": "double"}
        place = self._rng.choice(("", " FIRST", " AFTER id"))
        self.run(f"ALTER TABLE {table.name} MODIFY {name} {wider.get(sql, sql)} COMMENT 'moved'{place}")

    def _index(self, table: Table) -> None:
        """Create an index and drop it, or leave it."""
        name = self._name("k")
        fit = [each for each, one in table.columns.items() if one.sql.split("(")[0] in ("int", "bigint", "date")]
        if fit:
            self.run(f"CREATE INDEX {name} ON {table.name} ({self._rng.choice(fit)} DESC, id)")
            if self._rng.random() < 0.7:
                self.run(f"DROP INDEX {name} ON {table.name}")

    def _rename(self, table: Table) -> None:
        name = self._name("t")
        self.run(self._rng.choice((f"RENAME TABLE {table.name} TO {name}", f"ALTER TABLE {table.name} RENAME {name}")))
        table.name = name

    def _ring(self, _: Table) -> None:
        """Give two tables each other's name."""
        one, other = self._rng.sample(self.tables, 2)
        self.run(f"RENAME TABLE {one.name} TO ring, {other.name} TO {one.name}, ring TO {other.name}")
        one.name, other.name = other.name, one.name

    def _copy(self, table: Table) -> None:
        name, listed = self._name("l"), ", ".join(["id", *table.columns])
        self.run(
            f"CREATE TABLE {name} LIKE {table.name}",
            f"INSERT INTO {name} ({listed}) SELECT {listed} FROM {table.name}",
        )
        if self._rng.random() < 0.7:
            self.run(f"DROP TABLE {name}")

    def _select(self, table: Table) -> None:
        name, one = self._name("s"), self._rng.choice(sorted(table.columns))
        self.run(
            f"CREATE TABLE {name} (PRIMARY KEY (id, `_`)) SELECT id, row_number() OVER () `_`, {one} FROM {table.name}"
        )
        if self._rng.random() < 0.7:
            self.run(f"DROP TABLE IF EXISTS {name}, nowhere")

    def _truncate(self, table: Table) -> None:
        if self._rng.random() < 0.3:
            self.run(f"TRUNCATE TABLE {table.name}")
            table.keys.clear()

    def _comment(self, table: Table) -> None:
        self.run(f"ALTER TABLE {table.name} COMMENT 'é {self._names}', ENGINE = InnoDB")

    def _partition(self, table: Table) -> None:
        if table.keyed and not table.unique:
            self.run(f"ALTER TABLE {table.name} PARTITION BY HASH (id) PARTITIONS {self._rng.randint(2, 5)}")
            if self._rng.random() < 0.5:
                self.run(f"ALTER TABLE {table.name} REMOVE PARTITIONING")
