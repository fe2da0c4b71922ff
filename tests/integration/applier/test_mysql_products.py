"""From MySQL to MariaDB and from MariaDB to MySQL: equal tables, and refusals by name of what the other lacks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.config.apply import Target
from connector.errors import Unsupported
from connector.targets.mysql.target import MySqlTarget
from connector.verify import verify
from tests.contract.target_suite import Applier, stops
from tests.support.mysql_copies import applying, has_table, query, url_of
from tests.support.producing import Bench
from tests.support.servers.environment import Broker, SqlServer
from tests.support.written_tables import TABLES, fill, writing

SETTINGS = {"THL_SOURCE__SNAPSHOT__CHUNK_ROWS": "1000", "THL_SOURCE__DUMP_HEARTBEAT": "0.5"}
TYPED = (
    "CREATE TABLE typed (id BIGINT UNSIGNED PRIMARY KEY, d DECIMAL(65,30), f FLOAT, r DOUBLE, b BIT(17), y YEAR, "
    "t TIME(6), at DATETIME(3), ts TIMESTAMP(6) NULL, c CHAR(5) CHARACTER SET latin1, x TEXT, lb LONGBLOB, "
    "e ENUM('a','ü'), s SET('x','y','z'), j JSON, g GEOMETRY, n INT AS (id + 1) STORED)"
)
ROW = (
    "INSERT INTO typed (id, d, f, r, b, y, t, at, ts, c, x, lb, e, s, j, g) VALUES (18446744073709551614, "
    "'-1234567890123456789012345678901234.123456789012345678901234567890', 3.1415927, -0e0, b'10000000000000001', "
    "1901, '-838:59:58.999999', '1000-01-01 00:00:00.001', '1970-01-01 00:00:01.000001', 'é€', 'vär😀', x'00ff5c27', "
    "'ü', 'x,z', '{\"b\": [1, null, \"ü\"]}', ST_GeomFromText('POINT(1 2)'))"
)


@dataclass(frozen=True)
class Way:
    """A source and a target of the other product.

    Args:
        source, target: the names of their fixtures.
        product: the target's, as it names itself.
        lacks: a definition that the target does not have, with `definitions: plain` either.
        named: a word of it that the error has.
    """

    source: str
    target: str
    product: str
    lacks: str
    named: str


WAYS = [
    Way("mysql_server", "mariadb_server", "MariaDB ", "CREATE TABLE odd (id INT PRIMARY KEY, v VECTOR(3))", "VECTOR"),
    Way("mariadb_server", "mysql_server", "MySQL ", "CREATE TABLE odd (id INT PRIMARY KEY, v INET6)", "INET6"),
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"to {way.product.strip()}")
def test_tables_become_equal_and_what_the_other_lacks_stops(
    way: Way, request: pytest.FixtureRequest, kafka_broker: Broker, tmp_path: Path
) -> None:
    source, target = request.getfixturevalue(way.source), request.getfixturevalue(way.target)
    bench = Bench(source, kafka_broker, tmp_path, settings=dict(SETTINGS))
    name, tables = bench.service, list(TABLES)
    fill(bench, tables)
    bench.sql(f"USE {name}; SET NAMES utf8mb4; SET sql_mode = ''; SET time_zone = '+00:00'; {TYPED}; {ROW}")
    options = Target(url=SecretStr(url_of(target)), definitions="plain")
    with (
        bench.start() as producing,
        applying(tmp_path, name, kafka_broker.bootstrap, url_of(target), definitions="plain") as applier,
    ):
        producing.loaded()
        with writing(bench, tables):
            for sql in (
                "ALTER TABLE typed ADD more VARCHAR(20) NOT NULL DEFAULT 'it''s', DROP y",
                "UPDATE typed SET id = 5, j = '{\"a\": 1.5}', x = NULL",
                "RENAME TABLE t TO tmp, pair TO t, tmp TO pair",
                "RENAME TABLE t TO tmp, pair TO t, tmp TO pair",
                "CREATE TABLE last_one (id INT PRIMARY KEY)",
            ):
                bench.sql(f"USE {name}; {sql}")
            applier.until(lambda: has_table(target, name, "last_one"))
        report = verify(bench.config.model_copy(update={"target": options}), patience=30)
        assert report.equal, [str(d) for table in report.tables for d in table.differences]
        assert len(report.tables) == len(tables) + 2
        bench.sql(f"USE {name}; {way.lacks}")
        assert applier.process.wait() == Unsupported.exit_code
        assert way.named in applier.text
        assert f"thl apply --exclude-table {name}.odd" in applier.text
        assert not has_table(target, name, "odd")
        assert producing.stop() == 0, producing.text


@pytest.mark.parametrize(
    ("server", "definitions", "create", "named"),
    [
        ("mariadb_server", "source", "CREATE TABLE a (v INT) COLLATE utf8mb4_0900_ai_ci", "utf8mb4_0900_ai_ci"),
        ("mariadb_server", "source", "CREATE TABLE a (v JSON, KEY ((CAST(v AS UNSIGNED ARRAY))))", "ARRAY"),
        ("mariadb_server", "plain", "CREATE TABLE a (v VECTOR(2))", "VECTOR"),
        ("mysql_server", "source", "CREATE TABLE a (v INT) COLLATE utf8mb4_uca1400_ai_ci", "utf8mb4_uca1400_ai_ci"),
        ("mysql_server", "source", "CREATE TABLE a (v INT) WITH SYSTEM VERSIONING", "VERSIONING"),
        ("mysql_server", "plain", "CREATE TABLE a (v INET6)", "inet6"),
        ("mysql_server", "plain", "CREATE TABLE a (v UUID)", "uuid"),
    ],
)
def test_definition_that_the_other_product_lacks_is_refused_by_name(
    request: pytest.FixtureRequest, server: str, definitions: Literal["source", "plain"], create: str, named: str
) -> None:
    used: SqlServer = request.getfixturevalue(server)
    query(used, "DROP DATABASE IF EXISTS thl")
    target = MySqlTarget(url_of(used), SystemClock(), definitions=definitions)
    try:
        applier = Applier(target)
        applier.sql("CREATE DATABASE IF NOT EXISTS shop")
        error = stops(applier, Unsupported, create)
        assert named in error.message
        assert error.where["sql"] == create
        assert "thl apply --exclude-table shop.a" in error.hint
        assert not has_table(used, "shop", "a")
    finally:
        target.close()
        query(used, "DROP DATABASE shop")
        query(used, "DROP DATABASE thl")
