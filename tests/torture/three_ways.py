"""A server writes random rows; what it logged is read by us and by mysqlbinlog, or MariaDB's of that name, and compared
with its own words."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connector.fetching.mysql_programs import tool
from connector.mysql.server.mariadb_state import is_mariadb
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer
from tests.support.servers.mariadb_client import mariadb_binlog
from tests.torture.columns import Column, columns

SCHEMA = "torture"
_ASSIGNED = re.compile(rb"###   @(\d+)=(.*)")
_BARE = re.compile(rb"\\(?!x[01][0-9a-f])")  # MariaDB's tool escapes control characters alone, not its own escapes
_ACTIONS = {b"INSERT": "INSERT", b"UPDATE": "UPDATE", b"DELETE": "DELETE"}

KEY = -1  # its place among the columns
Image = dict[int, Any]
"""Column → value, as one of the three gives it; columns that are absent are not in it."""
Snapshot = dict[int, Image]
"""Key → row, as a SELECT says."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The settings of the server's log."""

    row_image: str = "FULL"
    checksum: str = "CRC32"
    compressed: bool = False
    partial_json: bool = False

    def __str__(self) -> str:
        told = [self.row_image, self.checksum]
        told += ["compressed"] * self.compressed + ["partial JSON"] * self.partial_json
        return ", ".join(told)


SETTINGS = (
    Setting(),
    Setting(row_image="MINIMAL"),
    Setting(row_image="NOBLOB", checksum="NONE"),
    Setting(compressed=True),
    Setting(partial_json=True, compressed=True),
    Setting(row_image="FULL", checksum="NONE", partial_json=True),
)

MARIADB_SETTINGS = (
    Setting(),
    Setting(compressed=True),
    Setting(row_image="MINIMAL"),
    Setting(row_image="NOBLOB", checksum="NONE", compressed=True),
    Setting(row_image="FULL_NODUP", compressed=True),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A row change as one reader gives it."""

    action: str
    before: Image | None
    after: Image | None

    @property
    def key(self) -> int:
        """The key of its row."""
        return int((self.before or self.after or {})[KEY])


@dataclass(slots=True)
class Comparison:
    """The number of compared values, and the differences.

    Args:
        table: columns of the table.
    """

    table: Sequence[Column]
    values: int = 0
    images: int = 0
    wrong: list[str] = field(default_factory=list)

    def transaction(self, before: Snapshot, after: Snapshot, rows: list[Row], peers: Iterator[Row]) -> None:
        """Compare a transaction's row changes.

        A row that it changes twice was never seen between: its images are compared with mysqlbinlog's alone.
        """
        keys = [row.key for row in rows]
        for row in rows:
            peer = next(peers, None)
            if peer is None or row.action != peer.action:
                self.wrong.append(f"{row.action} of row {row.key} where mysqlbinlog has {peer}")
                return
            once = keys.count(row.key) == 1
            self._image(row.before, peer.before, before.get(row.key) if once else None, row.key)
            self._image(row.after, peer.after, after.get(row.key) if once else None, row.key)

    def _image(self, ours: Image | None, peer: Image | None, said: Image | None, key: int) -> None:
        if (ours or {}).keys() != (peer or {}).keys():
            self.wrong.append(f"row {key}: columns {sorted(ours or {})} where mysqlbinlog has {sorted(peer or {})}")
            return
        self.images += ours is not None
        for number, value in (ours or {}).items():
            if number != KEY and peer is not None:
                self._value(self.table[number], value, peer[number], said and [said[number]], key)

    def _value(self, column: Column, value: Any, line: bytes, said: list[Any] | None, key: int) -> None:
        self.values += said is not None
        mine = None if value is None else column.of_ours(value)
        expression = line.startswith((b"JSON_", b"@"))  # of a difference: no value
        theirs = None if line == b"NULL" or expression else column.of_peer(line)
        if mine != theirs and not expression and not (column.near and _near(mine, theirs)):
            self.wrong.append(f"row {key} {column.sql[:40]}: {mine!r} is not mysqlbinlog's {theirs!r}")
        if said is not None:
            spoken = None if said[0] is None else column.of_select(said[0])
            if mine != spoken:
                self.wrong.append(f"row {key} {column.sql[:40]}: {mine!r} is not the server's {spoken!r}")


def compare(server: SqlServer, setting: Setting, rows: int, seed: int) -> Comparison:
    """Write, read, compare.

    Args:
        server: MySQL or MariaDB, whose files are on this machine.
        setting: the server's log settings.
        rows: to insert; half of them are changed, some deleted.
        seed: seed of the values.
    """
    rng = random.Random(seed)
    table = columns()
    with _session(server, setting) as connection, connection.cursor() as cursor:
        steps = [_select(cursor, table)]
        for _ in _work(cursor, table, rows, rng):
            steps.append(_select(cursor, table))
        logs = _files(cursor)
        peers = iter(_peers(logs, mariadb=is_mariadb(connection)))
    found, ours = Comparison(table), _ours(logs)
    if len(ours) != len(steps) - 1:
        found.wrong.append(f"{len(ours)} transactions where there were {len(steps) - 1}")
    for before, after, rows_ in zip(steps, steps[1:], ours, strict=False):
        found.transaction(before, after, rows_, peers)
    found.wrong += [f"only mysqlbinlog has {row.action}" for row in peers]
    return found


def _session(server: SqlServer, setting: Setting) -> Any:
    modes = "ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO"
    connection = connect(server, init_command=f"SET time_zone = '+00:00', sql_mode = '{modes}'")
    defined = ", ".join(f"c{number} {column.sql}" for number, column in enumerate(columns()))
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {SCHEMA}")
        cursor.execute(f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4")
        cursor.execute(f"CREATE TABLE {SCHEMA}.t (id INT PRIMARY KEY, {defined}) ROW_FORMAT=DYNAMIC")
        cursor.execute(f"SET GLOBAL binlog_checksum = {setting.checksum}")
        cursor.execute(f"SET SESSION binlog_row_image = {setting.row_image}")
        if is_mariadb(connection):
            cursor.execute(f"SET GLOBAL log_bin_compress = {int(setting.compressed)}, log_bin_compress_min_len = 10")
        else:
            cursor.execute(f"SET SESSION binlog_transaction_compression = {int(setting.compressed)}")
            cursor.execute(f"SET SESSION binlog_row_value_options = '{'PARTIAL_JSON' if setting.partial_json else ''}'")
        cursor.execute("FLUSH BINARY LOGS")
    return connection


def _work(cursor: Any, table: Sequence[Column], rows: int, rng: random.Random) -> Iterator[None]:
    """Insert, change, delete; yields after each transaction."""

    def value(column: Column) -> str:
        return "NULL" if rng.random() < 0.05 else column.make(rng)

    def insert(first: int, count: int) -> None:
        for id_ in range(first, first + count):
            cursor.execute(f"INSERT INTO {SCHEMA}.t VALUES ({id_}, {', '.join(map(value, table))})")

    document = next(number for number, column in enumerate(table) if column.sql == "json")
    cursor.execute("SET autocommit = 0")
    for first in range(1, rows + 1, 50):
        insert(first, min(50, rows + 1 - first))
        cursor.execute("COMMIT")
        yield
    for _ in range(max(1, rows // 50)):
        for id_ in rng.sample(range(1, rows + 1), min(25, rows)):
            chosen = rng.sample(range(len(table)), rng.randint(1, len(table)))
            changed = ", ".join(f"c{number} = {value(table[number])}" for number in chosen)
            cursor.execute(f"UPDATE {SCHEMA}.t SET {changed} WHERE id = {id_}")
            partly = f"JSON_REMOVE(JSON_SET(c{document}, '$.n', {rng.randrange(99)}, '$.a', 'b'), '$.t')"
            cursor.execute(f"UPDATE {SCHEMA}.t SET c{document} = {partly} WHERE id = {id_ % rows + 1}")
            cursor.execute("COMMIT")
            yield
    cursor.execute(f"DELETE FROM {SCHEMA}.t WHERE id % 5 = 0")
    cursor.execute("COMMIT")
    yield


def _select(cursor: Any, table: Sequence[Column]) -> dict[int, Image]:
    """Every row by its key; numbers stay as received."""
    shown = ", ".join(re.sub(r"\bv\b", f"c{number}", column.said) for number, column in enumerate(table))
    cursor.execute(f"SELECT id, {shown} FROM {SCHEMA}.t")
    return {row[0]: dict(enumerate(row[1:])) for row in cursor.fetchall()}


def _files(cursor: Any) -> list[Path]:
    """The log file with the written rows."""
    cursor.execute("SHOW BINARY LOGS")
    name = cursor.fetchall()[-1][0]
    cursor.execute("FLUSH BINARY LOGS")
    cursor.execute("SET GLOBAL binlog_checksum = DEFAULT")
    cursor.execute("SELECT @@datadir")
    return [Path(cursor.fetchone()[0]) / name]


def _ours(logs: Sequence[Path]) -> list[list[Row]]:
    """The row changes of each transaction, as the connector decodes them."""
    command = [sys.executable, "-m", "connector", "binlog", *map(str, logs), "--do", SCHEMA]
    told = subprocess.run(command, capture_output=True, check=True)
    found = []
    for line in told.stdout.splitlines():
        rows = []
        for change in json.loads(line)["changes"]:
            for row in change.get("rows", ()):
                rows.append(Row(change["action"], _numbered(row["before"]), _numbered(row["after"])))
        found.append(rows)
    return [rows for rows in found if rows]


def _numbered(image: dict[str, Any] | None) -> Image | None:
    return None if image is None else {KEY if name == "id" else int(name[1:]): image[name] for name in image}


def _peers(logs: Sequence[Path], *, mariadb: bool) -> list[Row]:
    """The row changes of all transactions, as mysqlbinlog prints them: values are bytes."""
    command = [
        *(mariadb_binlog() if mariadb else tool("mysqlbinlog")),
        "--no-defaults",
        "--base64-output=DECODE-ROWS",
        "-v",
        *map(str, logs),
    ]
    printed = subprocess.run(command, capture_output=True, check=True).stdout
    found: list[Row] = []
    image: Image = {}
    for line in printed.split(b"\n"):
        if line.startswith(b"### "):
            word = line[4:].split(b" ")[0]
            if word in _ACTIONS:
                found.append(Row(_ACTIONS[word], None, None))
            elif word in {b"SET", b"WHERE"}:
                row = found[-1]
                image = (row.before if word == b"WHERE" else row.after) or {}
                found[-1] = Row(
                    row.action, image if word == b"WHERE" else row.before, image if word == b"SET" else row.after
                )
            elif assigned := _ASSIGNED.fullmatch(line):
                image[int(assigned[1]) - 2] = _BARE.sub(rb"\\\\", assigned[2]) if mariadb else assigned[2]
    return found


def _near(mine: Any, theirs: Any) -> bool:
    return None not in {mine, theirs} and bool(abs(mine - theirs) <= 1e-5 * max(abs(mine), abs(theirs)))
