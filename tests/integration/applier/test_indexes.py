"""`target.indexes` from MySQL's binary log to PostgreSQL: unique values that change places, DDL, and masked columns."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator

import psycopg
import pytest

from connector.config.apply import Target
from connector.config.filters import Filters
from connector.config.model import Config
from connector.verify import verify
from tests.integration.applier.test_row_images import Source, apply
from tests.support.loading import a_database
from tests.support.servers.environment import DatabaseServer, SqlServer

TABLES = [
    "CREATE TABLE u (id INT PRIMARY KEY, a INT UNIQUE, m VARCHAR(40), n INT, b BLOB, UNIQUE KEY m (m), "
    "UNIQUE KEY an (a, n), KEY n (n DESC, m(9)), KEY b (b(20)))",
    "CREATE TABLE w (m VARCHAR(20) NOT NULL, a INT, UNIQUE KEY (m), UNIQUE KEY (a))",
]
STATEMENTS = [
    "INSERT IGNORE INTO u (id, a, m, n) VALUES ({0}, {1}, 'm{0}', {1}), ({1}, NULL, 'M{1}', NULL)",
    "REPLACE INTO u (id, a, m) VALUES ({0}, {1}, 'm{1}')",
    "UPDATE IGNORE u SET a = a + 100 ORDER BY a DESC LIMIT 30",
    "UPDATE IGNORE u SET a = a - 100 WHERE a > 100 ORDER BY a LIMIT 30",
    "UPDATE u SET n = n + 1, b = REPEAT('b', {0} * 200) WHERE id < {0}",
    "UPDATE u SET id = id + 1 ORDER BY id DESC",
    "UPDATE u SET m = UPPER(m) WHERE id = {0}",
    "DELETE FROM u WHERE id = {0}",
    "INSERT INTO u (id, a, m) VALUES ({0}, {1}, 'm{0}') ON DUPLICATE KEY UPDATE n = {1}",
    "INSERT IGNORE INTO w VALUES ('w{0}', {0}), ('w{1}', {1})",
    "UPDATE w SET a = a + 1 ORDER BY a DESC",
    "UPDATE IGNORE w SET m = CONCAT('w', {1}) WHERE m = CONCAT('w', {0})",
    "DELETE FROM w WHERE a = {0}",
]
# Two rows change places: by a value that no other row has.
SWAP = [
    "UPDATE {table} SET {column} = {other} WHERE {key} = {two}",
    "UPDATE {table} SET {column} = {second} WHERE {key} = {one}",
    "UPDATE {table} SET {column} = {first} WHERE {key} = {two}",
]
DEFINITIONS = [
    "ALTER TABLE u ADD COLUMN x INT, ADD UNIQUE KEY x (x, id), RENAME INDEX m TO mm",
    "ALTER TABLE u DROP INDEX an, CHANGE a a3 BIGINT",
    "CREATE TABLE v LIKE u",
    "ALTER TABLE u DROP COLUMN x, RENAME COLUMN n TO n2",
]


@pytest.fixture
def source(mysql_server: SqlServer, postgres_server: DatabaseServer) -> Iterator[Source]:
    with a_database(mysql_server, "indexes") as (configured, name):
        target = Target.model_validate({"url": postgres_server.dsn, "indexes": "all"})
        made = Source(mysql_server, Config(service=name, source=configured, target=target), name)
        yield made
        made.connection.close()


def indexes(source: Source) -> dict[str, list[str]]:
    """The secondary indexes of each table on the target: their columns, `!` for unique."""
    with psycopg.connect(source.config.target.url.get_secret_value()) as target:
        found = target.execute(
            "SELECT t.relname, c.relname, i.indisunique, pg_get_indexdef(c.oid) FROM pg_index i "
            "JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid "
            "JOIN pg_namespace n ON n.oid = t.relnamespace JOIN pg_description d ON d.objoid = c.oid "
            "WHERE n.nspname = %s ORDER BY 2",
            (source.config.service,),
        ).fetchall()
    result: dict[str, list[str]] = {}
    for table, name, unique, definition in found:
        result.setdefault(table, []).append(f"{name}{'!' if unique else ''} {definition.split(' USING ')[1]}")
    return result


def swap(source: Source, table: str, key: str, column: str) -> int:
    """Let two rows change their values of a unique column; 0 if there are not two."""
    source.cursor.execute(f"SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY RAND() LIMIT 2")
    rows = source.cursor.fetchall()
    if len(rows) < 2:
        return 0
    (one, first), (two, second) = ([repr(item) for item in row] for row in rows)
    for statement in SWAP:
        source.run(statement.format(table=table, key=key, column=column, other="-9", one=one, two=two, first=first,
                                    second=second))  # fmt: skip
    return 1


def test_random_load_with_unique_values_that_swap_leaves_equal_tables_and_the_sources_indexes(
    source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    draw = random.Random(7)
    source.run(*TABLES)
    swaps = 0
    for step in range(240):
        if step % 10 == 0:
            source.run(
                "COMMIT", f"SET SESSION binlog_row_image = {draw.choice(['FULL', 'MINIMAL', 'NOBLOB'])}", "BEGIN"
            )
        one, other = draw.sample(range(1, 40), 2)
        source.run(draw.choice(STATEMENTS).format(one, other))
        if draw.random() < 0.3:
            swaps += swap(source, *draw.choice([("u", "id", "a"), ("u", "id", "m"), ("w", "m", "a")]))
    source.run("COMMIT", *DEFINITIONS, "INSERT INTO v SELECT *, NULL FROM u", "BEGIN")
    swaps += swap(source, "u", "id", "m") + swap(source, "v", "id", "m")
    source.run("COMMIT")
    assert swaps > 20

    with caplog.at_level(logging.WARNING, "connector.targets"):
        apply(source.config, source.pieces(), draw)

    assert caplog.records == []
    report = verify(source.config, patience=0)
    assert report.equal, [str(difference) for table in report.tables for difference in table.differences]
    assert sum(table.rows for table in report.tables) > 40
    assert indexes(source) == {
        "u": ["u_a! btree (a3)", "u_b hash (b)", "u_mm! btree (m)", "u_n btree (n2 DESC, m)", "u_x! btree (id)"],
        "v": ["v_a! btree (a3)", "v_b hash (b)", "v_mm! btree (m)", "v_n btree (n DESC, m)", "v_x! btree (x, id)"],
        "w": ["w_a! btree (a)", "w_m! btree (m)"],
    }


def test_masked_and_dropped_columns_get_no_unique_index(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    source.run(
        "CREATE TABLE p (id INT PRIMARY KEY, m VARCHAR(20) UNIQUE, c VARCHAR(20), d INT, h VARCHAR(40), s INT, "
        "UNIQUE c (c), UNIQUE KEY ds (d, s), UNIQUE KEY h (h), UNIQUE KEY ids (id, s))",
        "INSERT INTO p VALUES (1, 'a', 'abc1', 1, 'x', 1), (2, 'b', 'abc2', 2, 'y', 1)",
        "CREATE UNIQUE INDEX m2 ON p (m, s)",
        "ALTER TABLE p ADD CONSTRAINT c2 UNIQUE (s, c)",
        "CREATE TABLE q (id INT PRIMARY KEY, m INT UNIQUE)",
        "INSERT INTO q VALUES (1, 1)",
        "DELETE FROM q",
        "INSERT INTO q VALUES (2, 1)",
    )
    service = source.config.service
    masks = {"m": {"fixed": "-"}, "c": {"truncate": 3}, "h": {"hash": 32}}
    rules = [
        {"match": [f"{service}.p"], "mask": masks, "drop": ["d"], "rename": {"s": "s2"}},
        {"match": [f"{service}.q"], "actions": ["insert", "update", "ddl"]},
    ]
    filters = Filters.model_validate({"do": [service], "tables": rules, "hash_key": "0123456789abcdef" * 2})
    source.config = source.config.model_copy(
        update={"source": source.config.source.model_copy(update={"filters": filters})}
    )
    with caplog.at_level(logging.WARNING, "connector.targets"):
        apply(source.config, source.pieces(), random.Random(1))
    assert caplog.records == []
    assert indexes(source) == {
        "p": ["p_c btree (c)", "p_c2 btree (s2, c)", "p_h! btree (h)", "p_ids! btree (id, s2)", "p_m2 btree (m, s2)"],
    }
