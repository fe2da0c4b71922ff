"""Row images without all columns and JSON differences of a real server are decoded completely."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from connector.errors import Unsupported
from connector.inspect.formats.tungsten import present
from connector.log.transaction.batch import PositionAdvance, Rows, TransactionBatch
from connector.log.transaction.position import AfterGtids
from tests.support.binlog import Image, changes, images, read_from, row_changes
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer

SCHEMA = "capture_images"
KEYED = (
    "CREATE TABLE k (id int PRIMARY KEY, a int DEFAULT 5, v varchar(20) NOT NULL DEFAULT 'd', b blob, "
    "gv int AS (a + 1) VIRTUAL, gs int AS (a + id) STORED, t text)"
)
KEYLESS = "CREATE TABLE n (a int DEFAULT 3, v varchar(9) DEFAULT 'z', b blob)"
DEFAULTS: dict[str, list[Any]] = {"k": [None, 5, "d", None, None, None, None], "n": [3, "z", None]}


@pytest.fixture
def cursor(mysql_server: SqlServer) -> Iterator[Any]:
    connection = connect(mysql_server)
    with connection.cursor() as cursor:
        for sql in (f"DROP DATABASE IF EXISTS {SCHEMA}", f"CREATE DATABASE {SCHEMA}", f"USE {SCHEMA}"):
            cursor.execute(sql)
        yield cursor
    connection.close()


def ask(cursor: Any, sql: str) -> list[tuple[Any, ...]]:
    cursor.execute(sql)
    return list(cursor.fetchall())


def whole(values: Image, bits: bytes, base: list[Any]) -> tuple[Any, ...]:
    """An image over what its absent columns are known to be."""
    assert values is not None
    places = present(bits, len(base))
    assert len(places) == len(values)
    row = list(base)
    for place, value in zip(places, values, strict=True):
        row[place] = value
    return tuple(row)


def replayed(
    found: list[TransactionBatch | PositionAdvance],
) -> tuple[dict[int, tuple[Any, ...]], Counter[tuple[Any, ...]], int]:
    """The tables as the images leave them: `k` by key, `n` counted; and how many changes had partial images."""
    keyed: dict[int, tuple[Any, ...]] = {}
    counted: Counter[tuple[Any, ...]] = Counter()
    partial = 0
    for change in changes(found):
        if not isinstance(change, Rows):
            continue
        table = change.layout.name.table
        partial += bool(change.before or change.after)
        for before, after in images(change):
            base = DEFAULTS[table]
            if before is not None and table == "k":
                base = list(keyed.pop(before[0]))
            elif before is not None:
                row = whole(before, change.before, base)
                counted[row] -= 1
                base = list(row)
            if after is not None:
                row = whole(after, change.after, base)
                if table == "k":
                    assert row[0] not in keyed
                    keyed[row[0]] = row
                else:
                    counted[row] += 1
    return keyed, +counted, partial


def test_random_changes_are_read_under_every_row_image(mysql_server: SqlServer, cursor: Any) -> None:
    cursor.execute(KEYED)
    cursor.execute(KEYLESS)
    (start,) = ask(cursor, "SELECT @@GLOBAL.gtid_executed")[0]
    draw = random.Random(20)
    statements = [
        "INSERT IGNORE INTO k (id) VALUES ({0}), ({1})",
        "INSERT IGNORE INTO k (id, b, t) VALUES ({0}, REPEAT('b', {1}), 't')",
        "INSERT IGNORE INTO k (id, a, v) VALUES ({0}, {1}, 'x'), ({1}, NULL, 'y')",
        "UPDATE k SET a = {1} WHERE id = {0}",
        "UPDATE k SET v = 'u{1}', b = NULL WHERE id > {0}",
        "UPDATE k SET t = 'text {0}' WHERE id = {1}",
        "UPDATE IGNORE k SET id = id + 1000 WHERE id = {0}",
        "UPDATE IGNORE k SET id = id - 1000 WHERE id > 1000 ORDER BY id LIMIT 1",
        "UPDATE IGNORE k SET id = 100 - id WHERE id IN ({0}, 100 - {0}) ORDER BY id",
        "REPLACE INTO k (id, t) VALUES ({0}, 'replaced')",
        "INSERT INTO k (id) VALUES ({0}) ON DUPLICATE KEY UPDATE v = 'dup', a = a + 1",
        "DELETE FROM k WHERE id IN ({0}, {1})",
        "INSERT INTO n () VALUES ()",
        "INSERT INTO n (v) VALUES ('{0}'), (NULL)",
        "INSERT INTO n (b) VALUES ('blob')",
        "UPDATE n SET a = {0} LIMIT 2",
        "UPDATE n SET b = '{1}' ORDER BY a LIMIT 1",
        "DELETE FROM n ORDER BY v, a LIMIT 2",
    ]
    for step in range(300):
        if step % 10 == 0:
            cursor.execute(f"SET SESSION binlog_row_image = {draw.choice(['MINIMAL', 'MINIMAL', 'NOBLOB', 'FULL'])}")
            cursor.execute("COMMIT" if step % 20 else "BEGIN")
        cursor.execute(draw.choice(statements).format(draw.randrange(1, 60), draw.randrange(1, 60)))
    cursor.execute("COMMIT")
    said = {row[0]: row for row in ask(cursor, "SELECT * FROM k")}
    copies = Counter(ask(cursor, "SELECT * FROM n"))
    cursor.execute("CREATE TABLE the_end (a int) SELECT 1 AS a")

    found = read_from(mysql_server, AfterGtids(start), lambda found: bool(row_changes(found, "the_end")))

    without = [
        piece for piece in found if not (isinstance(piece, TransactionBatch) and row_changes([piece], "the_end"))
    ]
    keyed, counted, partial = replayed(without)
    assert keyed == said
    assert counted == copies
    assert partial > 100


# JSON


def value(draw: random.Random, depth: int = 0) -> str:
    """An expression of SQL whose value JSON holds."""
    scalars = [
        lambda: str(draw.randrange(-(2 ** draw.choice([7, 15, 31, 63])), 2**31)),
        lambda: "18446744073709551615",
        lambda: f"CAST('{draw.uniform(-1e20, 1e20)!r}' AS DOUBLE)",
        lambda: f"CAST('{draw.randrange(10**18)}.{draw.randrange(10**9)}' AS DECIMAL(40, 12))",
        lambda: "TIMESTAMP'2024-02-29 01:02:03.000400'",
        lambda: "DATE'2001-01-01'",
        lambda: "TIME'-12:34:56.5'",
        lambda: "NULL",
        lambda: "CAST('true' AS JSON)",
        lambda: "'" + draw.choice(["", "é€😀", 'q"uo\\\\te', "x" * draw.randrange(300)]) + "'",
        lambda: "x'00ff10'",
    ]
    kind = draw.random()
    if depth < 3 and kind < 0.2:
        return f"JSON_ARRAY({', '.join(value(draw, depth + 1) for _ in range(draw.randrange(5)))})"
    if depth < 3 and kind < 0.4:
        members = [f"{json.dumps(key(draw))}, {value(draw, depth + 1)}" for _ in range(draw.randrange(5))]
        return f"JSON_OBJECT({', '.join(members)})"
    return draw.choice(scalars)()


def key(draw: random.Random) -> str:
    return draw.choice(["a", "b", "bb", "aa", "c d", "é", "x.y", "long" * 10, "1", "[0]", "$"])


def path(draw: random.Random) -> str:
    legs = []
    for _ in range(draw.randrange(1, 4)):
        if draw.random() < 0.6:
            legs.append("." + json.dumps(key(draw), ensure_ascii=False))
        else:
            legs.append(draw.choice(["[0]", "[1]", "[2]", "[7]", "[last]", "[last-1]", "[last-9]"]))
    return "$" + "".join(legs)


def changed(draw: random.Random, column: str) -> str:
    """One to three nested changes of a document."""
    for _ in range(draw.randrange(1, 4)):
        kind = draw.choice(["JSON_SET", "JSON_SET", "JSON_REPLACE", "JSON_REMOVE"])
        pairs = []
        for _ in range(draw.randrange(1, 3)):
            pairs.append(f"'{path(draw)}'" + ("" if kind == "JSON_REMOVE" else f", {value(draw)}"))
        column = f"{kind}({column}, {', '.join(pairs)})"
    return column


@pytest.mark.parametrize("image", ["FULL", "NOBLOB"])
def test_json_differences_give_the_documents_that_the_server_prints(
    mysql_server: SqlServer, cursor: Any, image: str
) -> None:
    draw = random.Random(f"partial {image}")
    cursor.execute("CREATE TABLE j (id int PRIMARY KEY, a json, n int, b json, t text)")
    cursor.execute("SET SESSION binlog_row_value_options = 'PARTIAL_JSON'")
    cursor.execute(f"SET SESSION binlog_row_image = {image}")
    (start,) = ask(cursor, "SELECT @@GLOBAL.gtid_executed")[0]
    for number in range(6):
        filler = f"'long' , REPEAT('f', {70000 if number == 5 else 200 + number})"
        for column in ("a", "b"):
            members = ", ".join(f"{json.dumps(key(draw))}, {value(draw)}" for _ in range(8))
            document = (
                f"JSON_OBJECT({members}, {filler})" if draw.random() < 0.7 else f"JSON_ARRAY({filler}, {members})"
            )
            if column == "a":
                cursor.execute(f"INSERT INTO j (id, a) VALUES ({number}, {document})")
            else:
                cursor.execute(f"UPDATE j SET b = {document} WHERE id = {number}")
    shown = "CAST(a AS CHAR CHARACTER SET utf8mb4), n, CAST(b AS CHAR CHARACTER SET utf8mb4)"
    said = []
    for step in range(400):
        number = draw.randrange(6)
        wanted = [f"a = {changed(draw, 'a')}", f"b = {changed(draw, 'b')}", f"n = {step}"]
        chosen = draw.sample(wanted, draw.randrange(1, 4))
        try:
            cursor.execute(f"UPDATE j SET {', '.join(chosen)} WHERE id = {number}")
        except pymysql.MySQLError as error:  # a path that ends in a document that cannot have it
            assert "JSON" in str(error) or "path" in str(error), error
            continue
        if cursor.rowcount:
            said.append(ask(cursor, f"SELECT {shown} FROM j WHERE id = {number}")[0])
    assert len(said) > 250
    cursor.execute("CREATE TABLE the_end (a int) SELECT 1 AS a")
    events: Counter[str] = Counter(row[2] for row in ask(cursor, f"SHOW BINLOG EVENTS IN '{log_file(cursor)}'"))

    found = read_from(mysql_server, AfterGtids(start), lambda found: bool(row_changes(found, "the_end")))

    arrived = []
    for change in changes(found):
        if isinstance(change, Rows) and change.layout.name.table == "j" and change.action.name == "UPDATE":
            for _, after in images(change):
                row = whole(after, change.after, [None] * 5)
                arrived.append((row[1], row[2], row[3]))
    assert arrived[-len(said) :] == said
    assert events["Update_rows_partial"] > 250, events


def log_file(cursor: Any) -> str:
    return str(ask(cursor, "SHOW BINARY LOG STATUS")[0][0])


def test_differences_from_a_document_that_the_before_image_lacks_stop(mysql_server: SqlServer, cursor: Any) -> None:
    cursor.execute("CREATE TABLE j (id int PRIMARY KEY, a json)")
    cursor.execute("INSERT INTO j VALUES (1, JSON_OBJECT('a', REPEAT('x', 500), 'b', 'four'))")
    (start,) = ask(cursor, "SELECT @@GLOBAL.gtid_executed")[0]
    cursor.execute("SET SESSION binlog_row_value_options = 'PARTIAL_JSON'")
    cursor.execute("SET SESSION binlog_row_image = MINIMAL")
    cursor.execute("UPDATE j SET a = JSON_SET(a, '$.b', 'five')")

    with pytest.raises(Unsupported) as caught:
        read_from(mysql_server, AfterGtids(start), lambda _: False, seconds=20)

    assert caught.value.where["column"] == "a"
    assert caught.value.where["event"] == "PARTIAL_UPDATE_ROWS(39)"
    assert "binlog_row_value_options" in caught.value.hint
