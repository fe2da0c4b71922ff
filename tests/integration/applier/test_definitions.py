"""Definitions from MySQL's binary log to PostgreSQL: columns that rules publish NULL for are nullable there."""

from __future__ import annotations

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

DESCRIBED = """
SELECT a.attname::text, a.attnotnull, pg_get_expr(d.adbin, d.adrelid), col_description(a.attrelid, a.attnum)
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attname
"""


@pytest.fixture
def source(mysql_server: SqlServer, postgres_server: DatabaseServer) -> Iterator[Source]:
    with a_database(mysql_server, "definitions") as (configured, name):
        rule = {"match": [name], "zero_dates": ["born*", "since", "stamp"], "mask": {"secret": {"fixed": None}}}
        filters = Filters.model_validate({"do": [name], "tables": [rule]})
        target = Target.model_validate({"url": postgres_server.dsn})
        made = Source(
            mysql_server,
            Config(service=name, source=configured.model_copy(update={"filters": filters}), target=target),
            name,
        )
        yield made
        made.connection.close()


def test_columns_published_with_nulls_are_nullable_on_the_target(source: Source) -> None:
    source.run(
        "SET SESSION sql_mode = '', explicit_defaults_for_timestamp = OFF",
        "CREATE TABLE p (id INT PRIMARY KEY, born DATE NOT NULL COMMENT 'day', secret INT NOT NULL, "
        "name VARCHAR(20) NOT NULL DEFAULT 'x', stamp TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00')",
        "INSERT INTO p VALUES (1, '0000-00-00', 5, 'a', 0), (2, '2024-01-01', 6, 'b', '2024-01-01 00:00:00')",
        "ALTER TABLE p ADD since DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00', CHANGE born born2 DATE NOT NULL",
        "INSERT INTO p VALUES (3, '0000-00-00', 7, 'c', 0, '2024-02-03 04:05:06')",
        "CREATE TABLE q LIKE p",
        "INSERT INTO q SELECT * FROM p",
        "ALTER TABLE q DROP PRIMARY KEY",
        "UPDATE q SET secret = 9, since = 0",
        "SET SESSION binlog_row_image = MINIMAL",
        "INSERT INTO p (id) VALUES (4)",
    )
    apply(source.config, source.pieces(), random.Random(1))
    report = verify(source.config, patience=0)
    assert report.equal, [str(difference) for table in report.tables for difference in table.differences]
    with psycopg.connect(source.config.target.url.get_secret_value()) as target:
        for table in ("p", "q"):
            found = target.execute(DESCRIBED, (f"{source.config.service}.{table}",)).fetchall()
            assert found == [
                ("born2", False, None, None),
                ("id", True, None, None),
                ("name", True, "'x'::text", None),
                ("secret", False, None, None),
                ("since", False, None, None),
                ("stamp", False, None, None),
            ]
